"""The settings of git that are known to be harmless: the one list of them, by which every other setting may start a program.

So a new kind of key of git counts as one that starts something, wherever it stands: ybs's own git overrides it (`git/hardening.py`), and what it
names in a project is the person's (`git_settings`). Keys are written as section and name in lower case, without what stands in quotes
between them (https://git-scm.com/docs/git-config).
"""

from ybs.core.lazy import lazy

#: All in these sections, and these keys, start no program, name no file, lead nowhere else, and give a command no other branches to push, to
#: overwrite or to delete than its words say.
_SECTIONS_OF_PLAIN = "advice branch color column gui index maintenance pack rerere status user"
_PLAIN = """
    commit.gpgsign core.autocrlf core.bare core.checkstat core.commitgraph core.compression core.eol core.filemode core.hidedotfiles
    core.ignorecase core.logallrefupdates core.longpaths core.multipackindex core.precomposeunicode core.preloadindex core.quotepath
    core.repositoryformatversion core.safecrlf core.sharedrepository core.sparsecheckout core.sparsecheckoutcone core.symlinks core.trustctime
    core.untrackedcache core.whitespace credential.username diff.algorithm diff.colormoved diff.renames diff.submodule
    extensions.compatobjectformat extensions.objectformat extensions.partialclone extensions.preciousobjects extensions.refstorage
    extensions.relativeworktrees extensions.worktreeconfig fetch.parallel fetch.prune fetch.writecommitgraph gc.auto gc.autodetach
    gc.autopacklimit gpg.format http.postbuffer http.version lfs.access lfs.locksverify lfs.repositoryformatversion log.date log.decorate
    merge.conflictstyle merge.ff merge.renamelimit merge.renames pull.ff push.autosetupremote push.followtags rebase.autosquash
    rebase.autostash rebase.updaterefs remote.gh-resolved remote.glab-resolved remote.partialclonefilter remote.promisor remote.prune
    remote.skipdefaultupdate remote.skipfetchall remote.tagopt tag.gpgsign
"""
#: They start no program either. They lead elsewhere, give other branches, or name a file that is read and not run, which is nothing to a git that
#: reaches no network; the words of an alias are looked at by themselves.
_SECTIONS_OF_LEADING = "alias author committer delta format http safe url"
_LEADING = """
    blame.ignorerevsfile branch.mergeoptions branch.rebase checkout.workers checkout.thresholdforparallelism commit.cleanup commit.template
    core.abbrev core.attributesfile core.bigfilethreshold core.commentchar core.commentstring core.createobject core.deltabasecachelimit
    core.excludesfile core.filesreflocktimeout core.loosecompression core.maxtreedepth core.packedgitlimit core.packedgitwindowsize
    core.packedrefstimeout core.worktree diff.colormovedws diff.context diff.dirstat diff.dstprefix diff.ignoresubmodules
    diff.interhunkcontext diff.orderfile diff.renamelimit diff.srcprefix diff.statgraphwidth diff.statnamewidth diff.tool diff.wordregex
    diff.wserrorhighlight diff.xfuncname gpg.allowedsignersfile i18n.commitencoding i18n.logoutputencoding init.defaultbranch lfs.url
    log.diffmerges log.excludedecoration mailmap.blob mailmap.file merge.name merge.tool protocol.version pull.rebase push.default remote.fetch
    remote.mirror remote.prunetags remote.push remote.pushdefault remote.pushurl remote.url submodule.active submodule.branch
    submodule.fetchrecursesubmodules submodule.ignore submodule.shallow submodule.url
"""
#: The values with which some lead nowhere else.
_REBASE = lazy("(?i:true|false|merges)")
_VALUES = {
    "branch.rebase": _REBASE,
    "pull.rebase": _REBASE,
    "core.fsmonitor": lazy("(?i:true|false)"),
    "push.default": lazy("(?i:current|nothing|simple)"),
    "remote.fetch": lazy("[^:]*(?::refs/remotes/.*)?"),
    "remote.gh-resolved": lazy("base"),
    "remote.glab-resolved": lazy("base"),
}


_plain, _leading = frozenset(_PLAIN.split()), frozenset(_LEADING.split())
_plain_sections = frozenset(_SECTIONS_OF_PLAIN.split())
_harmless = _plain | _leading
_harmless_sections = _plain_sections | frozenset(_SECTIONS_OF_LEADING.split())


def is_harmless(key: str) -> bool:
    """Return whether a setting starts no program, whatever its value is."""
    return key in _harmless or key.partition(".")[0] in _harmless_sections


def is_plain(key: str, value: str) -> bool:
    """Return whether a setting of a repository starts nothing and leads nowhere else, with this value."""
    if values := _VALUES.get(key):
        return bool(values().fullmatch(value))
    return key in _plain or (key.partition(".")[0] in _plain_sections and key not in _leading)
