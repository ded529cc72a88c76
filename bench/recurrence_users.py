"""A generator of users for the detector of recurring tasks: what they ask on which day, what was done for it, and which of it recurs.

Each user has some tasks that come again (paraphrased, with typos, with other files and versions, in their own language), one-off requests of the same
verbs and tools, and hard negatives: retries within a day, a template pasted once, the same work on other things. Seeds below 1,000 are for tuning,
those above for judging.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final, NamedTuple

from ybs.learning.detector import PastRequest

DAY: Final = 86_400.0
#: A Monday, 09:00 UTC.
START: Final = 1_767_603_600.0
#: Seeds from here on are never looked at while the detector is tuned.
JUDGED_FROM: Final = 1_000


class Intent(NamedTuple):
    """A task that recurs: how it is worded in one language, and what is done for it. `{file}` and the like vary."""

    name: str
    words: tuple[str, ...]
    steps: str


class Asked(NamedTuple):
    """A request and the name of the recurring task that it is of; empty for one that is none."""

    request: PastRequest
    intent: str


class User(NamedTuple):
    """A month of one user. `gaps` are the days between two of a task that has a rhythm."""

    asked: tuple[Asked, ...]
    gaps: dict[str, float]


INTENTS: Final = {
    "en": (
        Intent("changelog", (
            "update the changelog for {version}",
            "please add the changes since the last tag to CHANGELOG.md for {version}",
            "write the changelog entries of version {version}",
            "changelog for the {version} release please",
            "bring the changelog up to date, release is {version}",
        ), "run git log|read CHANGELOG.md|edit CHANGELOG.md"),
        Intent("standup", (
            "summarise what I committed yesterday for the standup",
            "standup notes: what did I commit since yesterday?",
            "give me a summary of yesterday's commits for standup",
            "what did I do yesterday? short bullet points for the standup, from the commits",
        ), "run git log|run git diff"),
        Intent("dependencies", (
            "check for outdated dependencies and bump the minor ones",
            "bump outdated dependencies (minor versions only)",
            "are there outdated dependencies? update the minor ones and run the tests",
            "update the dependencies that are outdated, only minor bumps",
        ), "run pip list|read requirements.txt|edit requirements.txt|run pytest"),
        Intent("lint", (
            "run ruff and fix all lint errors",
            "fix the lint errors that ruff reports",
            "lint: run ruff, fix what it complains about",
            "ruff complains again, fix all the lint errors",
        ), "run ruff check|read {file}|edit {file}|run ruff check"),
        Intent("coverage", (
            "which functions in {file} are not covered by tests? add tests for them",
            "add the missing tests for {file}, coverage should be complete",
            "look at the coverage of {file} and write the tests that are missing",
            "write missing tests for {file} until the coverage is full",
        ), "run coverage report|read {file}|write test_{name}.py|run pytest"),
        Intent("docstrings", (
            "add docstrings to all public functions in {file}",
            "write docstrings for the public functions of {file}",
            "{file} has public functions without docstrings, please add them",
            "docstrings for every public function in {file} please",
        ), "read {file}|edit {file}"),
        Intent("rebase", (
            "rebase {branch} onto main and resolve the conflicts",
            "rebase my branch {branch} on main, fix conflicts",
            "please rebase onto main ({branch}) and solve merge conflicts",
            "get {branch} up to date with main by a rebase, conflicts too",
        ), "run git fetch|run git rebase|edit {file}|run git rebase"),
        Intent("deploy", (
            "build the docker image and deploy it to staging",
            "deploy the current build to staging (docker image first)",
            "make a docker image and put it on staging",
            "new docker image, then deploy to staging",
        ), "run docker build|run docker push|run kubectl apply"),
        Intent("i18n", (
            "translate the new strings in locales/en.json to German and French",
            "new strings in en.json: add the German and French translations",
            "add missing translations (German, French) for the new strings of locales/en.json",
            "the strings that are new in en.json need German and French translations",
        ), "read en.json|edit de.json|edit fr.json"),
        Intent("report", (
            "make the weekly report of open issues by label",
            "weekly report: open issues grouped by label",
            "open issues by label for this week's report",
            "I need the weekly issues report again, open ones by label",
        ), "run gh issue|write report.md"),
        Intent("migration", (
            "create a database migration for the changed models in {file}",
            "make a migration for the model changes in {file}",
            "models in {file} changed, generate the database migration",
            "generate a migration from the models in {file} and check it",
        ), "read {file}|run alembic revision|read versions|run alembic upgrade"),
        Intent("release", (
            "tag release {version} and push the tag",
            "create the release tag {version} and push it",
            "release {version}: set the version, tag, push",
            "tag and push release {version}",
        ), "edit pyproject.toml|run git commit|run git tag|run git push"),
    ),
    "de": (
        Intent("changelog", (
            "aktualisiere das Changelog für {version}",
            "bitte trag die Änderungen seit dem letzten Tag ins Changelog ein, Version {version}",
            "Changelog für Version {version} schreiben",
            "das Changelog auf den Stand von {version} bringen",
        ), "run git log|read CHANGELOG.md|edit CHANGELOG.md"),
        Intent("standup", (
            "fass meine Commits von gestern fürs Standup zusammen",
            "was habe ich gestern committet? kurze Zusammenfassung fürs Standup",
            "Zusammenfassung der Commits von gestern für das Standup",
            "Standup: Commits von gestern in Stichpunkten",
        ), "run git log|run git diff"),
        Intent("abhaengigkeiten", (
            "prüfe veraltete Abhängigkeiten und aktualisiere die kleinen Versionen",
            "aktualisiere die veralteten Abhängigkeiten, nur kleine Versionen",
            "gibt es veraltete Abhängigkeiten? bitte die kleinen Versionen aktualisieren",
            "veraltete Abhängigkeiten aktualisieren und Tests laufen lassen",
        ), "run pip list|read requirements.txt|edit requirements.txt|run pytest"),
        Intent("uebersetzung", (
            "übersetze die neuen Texte aus en.json ins Deutsche",
            "neue Texte in en.json: deutsche Übersetzung ergänzen",
            "ergänze die fehlenden deutschen Übersetzungen der Texte in en.json",
            "die neuen Texte der en.json brauchen eine deutsche Übersetzung",
        ), "read en.json|edit de.json"),
        Intent("tests", (
            "schreib fehlende Tests für {file}",
            "für {file} fehlen Tests, bitte schreiben",
            "ergänze die fehlenden Tests zu {file}",
            "fehlende Tests von {file} ergänzen und ausführen",
        ), "read {file}|write test_{name}.py|run pytest"),
        Intent("bericht", (
            "erstelle den Wochenbericht der offenen Tickets nach Label",
            "Wochenbericht: offene Tickets nach Label gruppiert",
            "ich brauche wieder den Wochenbericht mit den offenen Tickets nach Label",
            "offene Tickets nach Label für den Wochenbericht",
        ), "run gh issue|write bericht.md"),
    ),
    "fr": (
        Intent("journal", (
            "mets à jour le journal des modifications pour {version}",
            "ajoute les modifications depuis le dernier tag au journal, version {version}",
            "journal des modifications de la version {version} s'il te plaît",
            "complète le journal des modifications, version {version}",
        ), "run git log|read CHANGELOG.md|edit CHANGELOG.md"),
        Intent("resume", (
            "résume mes commits d'hier pour la réunion du matin",
            "réunion du matin : résumé des commits d'hier",
            "fais un résumé de mes commits d'hier pour la réunion du matin",
            "les commits d'hier en quelques points pour la réunion du matin",
        ), "run git log|run git diff"),
        Intent("traduction", (
            "traduis les nouveaux textes de en.json en français",
            "nouveaux textes dans en.json : ajoute la traduction en français",
            "ajoute les traductions françaises qui manquent pour les textes de en.json",
            "il manque la traduction en français des nouveaux textes de en.json",
        ), "read en.json|edit fr.json"),
        Intent("tests", (
            "écris les tests manquants pour {file}",
            "il manque des tests pour {file}, écris-les",
            "ajoute les tests qui manquent à {file}",
            "tests manquants de {file} : écris et lance les tests",
        ), "read {file}|write test_{name}.py|run pytest"),
    ),
    "es": (
        Intent("cambios", (
            "actualiza el registro de cambios para {version}",
            "añade al registro los cambios desde la última etiqueta, versión {version}",
            "registro de cambios de la versión {version} por favor",
            "pon al día el registro de cambios con la versión {version}",
        ), "run git log|read CHANGELOG.md|edit CHANGELOG.md"),
        Intent("despliegue", (
            "construye la imagen de docker y despliega en staging",
            "despliega la imagen de docker en staging",
            "nueva imagen de docker y después despliegue en staging",
            "haz la imagen de docker y ponla en staging",
        ), "run docker build|run docker push|run kubectl apply"),
        Intent("informe", (
            "haz el informe semanal de incidencias abiertas por etiqueta",
            "informe semanal: incidencias abiertas agrupadas por etiqueta",
            "necesito otra vez el informe semanal con las incidencias abiertas por etiqueta",
            "incidencias abiertas por etiqueta para el informe semanal",
        ), "run gh issue|write informe.md"),
    ),
}  # fmt: skip

_ONE_OFF: Final = {
    "en": (
        ("fix the {thing} in the {place}", "why does the {place} {fail}?", "add a {feature} to the {place}", "rename {thing2} to {other} in {file}",
         "explain how the {place} works", "refactor the {place} so that {thing2} is not needed", "remove the unused {thing2} from {file}",
         "write a test for the {thing} in the {place}", "make the {place} faster", "there is a {thing} when I open the {place}, can you look?"),
        {
            "thing": ("memory leak", "race condition", "typo", "wrong timezone", "off by one error", "deadlock", "broken link", "null pointer", "flaky assertion", "encoding bug", "rounding error", "missing import", "stale cache", "infinite loop", "wrong colour", "double request", "lost update", "wrong total", "crash", "timeout"),
            "place": ("invoice export", "login form", "websocket handler", "settings page", "search index", "upload dialog", "mail queue", "payment webhook", "csv parser", "http client", "session store", "image resizer", "calendar view", "audit trail", "rate limiter", "config loader", "user table", "password reset", "metrics endpoint", "sidebar"),
            "fail": ("crash on start", "return 500", "forget the filter", "take 3 seconds", "show nothing", "lose the order", "print twice", "hang at the end"),
            "feature": ("retry button", "dry-run option", "progress bar", "dark theme", "sort order", "limit parameter", "date filter", "copy button", "keyboard shortcut", "health check", "csv download", "tooltip"),
            "thing2": ("the old wrapper", "get_user", "the global lock", "TmpBuffer", "the compat layer", "parse_all", "the feature flag", "do_it", "the second copy", "Helper"),
            "other": ("fetch_user", "Buffer", "load_all", "apply", "Support", "run_once", "build_tree", "as_dict"),
        },
    ),
    "de": (
        ("behebe {thing} in {place}", "warum {fail} {place}?", "ergänze {feature} in {place}", "erkläre, wie {place} funktioniert", "räum {place} auf", "benenne {thing2} in {file} um"),
        {
            "thing": ("das Speicherleck", "den Tippfehler", "die falsche Zeitzone", "den Absturz", "den Rundungsfehler", "die Endlosschleife", "den kaputten Link", "die doppelte Anfrage"),
            "place": ("der Rechnungsausgabe", "der Anmeldung", "der Suche", "dem Kalender", "der Bildverkleinerung", "dem Postversand", "der Tabelle", "der Konfiguration", "dem Parser", "der Kasse"),
            "fail": ("stürzt beim Start ab", "liefert einen Fehler:", "braucht drei Sekunden:", "zeigt nichts:"),
            "feature": ("einen Knopf zum Wiederholen", "einen Fortschrittsbalken", "eine Sortierung", "einen Datumsfilter", "eine Tastenkombination"),
            "thing2": ("get_user", "parse_all", "die alte Klasse", "Helper"),
            "other": ("x",),
        },
    ),
    "fr": (
        ("corrige {thing} dans {place}", "pourquoi {place} {fail} ?", "ajoute {feature} à {place}", "explique comment fonctionne {place}", "nettoie {place}"),
        {
            "thing": ("la fuite de mémoire", "la faute de frappe", "le fuseau horaire", "le plantage", "l'erreur d'arrondi", "le lien cassé"),
            "place": ("l'export des factures", "la page de connexion", "la recherche", "le calendrier", "l'envoi de courriels", "le tableau", "l'analyseur", "la caisse"),
            "fail": ("plante au démarrage", "renvoie une erreur", "prend trois secondes", "n'affiche rien"),
            "feature": ("un bouton", "une barre de progression", "un tri", "un filtre de dates", "un raccourci clavier"),
            "thing2": ("x",), "other": ("x",),
        },
    ),
    "es": (
        ("corrige {thing} en {place}", "¿por qué {place} {fail}?", "añade {feature} a {place}", "explica cómo funciona {place}", "limpia {place}"),
        {
            "thing": ("la fuga de memoria", "la errata", "la zona horaria", "el fallo", "el error de redondeo", "el enlace roto"),
            "place": ("la exportación de facturas", "el inicio de sesión", "la búsqueda", "el calendario", "el envío de correo", "la tabla", "el analizador", "la caja"),
            "fail": ("falla al arrancar", "devuelve un error", "tarda tres segundos", "no muestra nada"),
            "feature": ("un botón", "una barra de progreso", "un orden", "un filtro de fechas", "un atajo de teclado"),
            "thing2": ("x",), "other": ("x",),
        },
    ),
}  # fmt: skip

_FILES: Final = (
    "src/app.py", "src/api/users.py", "src/api/orders.py", "lib/cache.py", "src/core/parser.py", "src/db/models.py", "web/views.py", "src/mail.py", "tools/sync.py",
    "src/jobs/export.py", "src/auth/tokens.py", "src/pay/stripe.py", "src/search/index.py", "src/ui/table.ts", "src/ui/form.ts", "cmd/main.go", "pkg/queue/queue.go",
)  # fmt: skip
_BRANCHES: Final = ("feature/login", "fix/tz", "search-v2", "export-csv", "cleanup", "pay-refunds")
_COMMON_STEPS: Final = ("search", "read {file}", "edit {file}", "run pytest")
_PASTED: Final = (
    "Please fill in the following template for this ticket. Summary: {topic}. Steps to reproduce: open the page, do the thing, see the error. "
    "Expected behaviour: it works. Actual behaviour: it does not. Environment: production. Priority: high. Owner: nobody yet."
)


def user(seed: int, *, days: int = 30) -> User:
    """Make the requests of one user over some days, in their order."""
    dice = random.Random(seed)
    language = dice.choice(("en", "en", "en", "de", "fr", "es"))
    intents = dice.sample(INTENTS[language], k=min(6, len(INTENTS[language])))
    rhythms = {intent.name: dice.choice((1, 2, 3, 7, 0)) for intent in intents}
    asked: list[Asked] = []
    for intent in intents:
        asked += _recurring(dice, intent, rhythms[intent.name], days)
    pasted_on = dice.randrange(days)
    for day in range(days):
        if day % 7 < 5 or dice.random() < 0.2:
            asked += _day(dice, language, day)
        if day == pasted_on:
            asked += _pasted(dice, language, day)
    asked.sort(key=lambda each: each.request.at)
    gaps = {name: float(gap) for name, gap in rhythms.items() if gap}
    return User(tuple(asked), gaps)


def _recurring(dice: random.Random, intent: Intent, gap: int, days: int) -> Iterator[Asked]:
    """Yield a task each `gap` days with some hours of jitter; 0 means whenever it is needed."""
    day = float(dice.randrange(0, gap or 4))
    while day < days:
        at = START + day * DAY + dice.gauss(0, 3_600)
        yield Asked(_request(dice, dice.choice(intent.words), intent.steps, at), intent.name)
        day += gap or dice.choice((2, 3, 4, 5, 6, 8))


def _day(dice: random.Random, language: str, day: int) -> Iterator[Asked]:
    """Yield what is asked once, with the same verbs and tools, and now and then one thing again and again within an hour."""
    for _ in range(dice.randint(4, 8)):
        yield Asked(_request(dice, _one_off(dice, language), _steps(dice), _hour(dice, day)), "")
    if dice.random() < 0.15:
        text, begun = _one_off(dice, language), _hour(dice, day)
        for number in range(dice.randint(3, 6)):
            yield Asked(_request(dice, text, _steps(dice), begun + 400 * number), "")


def _pasted(dice: random.Random, language: str, day: int) -> Iterator[Asked]:
    """Yield one template for many things, pasted on one day."""
    begun = _hour(dice, day)
    for number in range(dice.randint(4, 8)):
        text = _PASTED.format(topic=_one_off(dice, language))
        yield Asked(_request(dice, text, "run gh issue", begun + 200 * number), "")


def _one_off(dice: random.Random, language: str) -> str:
    patterns, words = _ONE_OFF[language]
    pattern = dice.choice(patterns)
    for slot, values in words.items():
        pattern = pattern.replace("{" + slot + "}", dice.choice(values))
    return pattern


def _hour(dice: random.Random, day: int) -> float:
    return START + day * DAY + dice.uniform(0, 9 * 3_600)


def _steps(dice: random.Random) -> str:
    kept = [step for step in _COMMON_STEPS if dice.random() < 0.8]
    if dice.random() < 0.25:
        kept.insert(
            dice.randrange(len(kept) + 1),
            dice.choice(
                (
                    "run git log",
                    "run git diff",
                    "read CHANGELOG.md",
                    "run ruff check",
                    "edit CHANGELOG.md",
                    "run npm test",
                )
            ),
        )
    return "|".join(kept or ["read {file}"])


def _request(dice: random.Random, words: str, steps: str, at: float) -> PastRequest:
    """Fill in the slots, misspell now and then, and let the model wander a little in what it does."""
    file = dice.choice(_FILES)
    name = file.rsplit("/", 1)[-1].partition(".")[0]
    version = f"{dice.randint(0, 3)}.{dice.randint(0, 20)}.{dice.randint(0, 9)}"
    slots = {"file": file, "name": name, "version": version, "branch": dice.choice(_BRANCHES)}
    text, done = words, steps.split("|")
    for slot, value in slots.items():
        text = text.replace("{" + slot + "}", value)
        done = [each.replace("{" + slot + "}", value.rsplit("/", 1)[-1]) for each in done]
    if dice.random() < 0.15:
        text = _misspelt(dice, text)
    wandered = [step for step in done if len(done) < 3 or dice.random() < 0.92]
    for _ in range(dice.choice((0, 0, 0, 1, 1, 2))):
        extra = dice.choice(
            ("search", "read README.md", f"read {name}.py", "run ls", "run git status")
        )
        wandered.insert(dice.randrange(len(wandered) + 1), extra)
    return PastRequest(
        text=text, steps=tuple(wandered), at=at, project="/home/user/project", session=f"s{int(at)}"
    )


def _misspelt(dice: random.Random, text: str) -> str:
    place = dice.randrange(1, max(len(text) - 2, 2))
    match dice.choice(("swap", "drop", "double")):
        case "swap":
            return (
                text[:place]
                + text[place + 1 : place + 2]
                + text[place : place + 1]
                + text[place + 2 :]
            )
        case "drop":
            return text[:place] + text[place + 1 :]
        case _:
            return text[:place] + text[place] + text[place:]
