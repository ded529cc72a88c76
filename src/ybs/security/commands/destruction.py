"""What destroys: the table of programs, verbs and options after which something is gone for good or public.

A row: programs, verbs (any of them, or none), options or operands (any of them, or none), what they do. `of=*` is
the beginning of an operand; `!--staged` holds where the option is missing.
"""

_UNSAVED = "throws away changes that are not committed"
_FAR_HISTORY = "overwrites or deletes history at the other end"
_PUBLISHED = "publishes, which cannot be taken back"
_CLOUD = "deletes resources of a cloud or cluster"
_SCHEMA = "deletes the data of a database"
_REMOVED = "remove purge autoremove erase uninstall del"
ROWS: tuple[tuple[str, str, str, str], ...] = (
    ("rm", "", "-r", "deletes folders and all that is in them"),
    ("shred wipefs fdisk sfdisk parted mkswap mkfs newfs mke srm blkdiscard lvremove vgremove pvremove", "", "", "destroys data for good"),
    ("truncate", "", "", "cuts files off"),
    ("dd", "", "of=*", "overwrites what it writes to"),
    ("mv", "", "/dev/null", "throws files away"),
    ("rsync", "", "--delete --delete-after --delete-before --delete-excluded", "deletes files that the source lacks"),
    ("shutdown reboot halt poweroff", "", "", "stops the machine"),
    ("systemctl init", "poweroff reboot halt kexec 0 6", "", "stops the machine"),
    ("kill", "", "-1", "ends every process"),
    ("chmod chown", "777 /", "-r", "changes the rights of a whole tree"),
    ("find fd fdfind", "", "-delete", "deletes every file it finds"),
    ("tar bsdtar", "", "--remove-files", "deletes the files that it packs"),
    ("zip", "", "-m --move", "deletes the files that it packs"),
    ("rsync", "", "--remove-source-files", "deletes the files that it copies"),
    ("7z 7za 7zz", "", "-sdel", "deletes the files that it packs"),
    ("crontab", "", "-r", "deletes all scheduled jobs"),
    ("userdel groupdel deluser", "", "", "deletes a user or group"),
    ("iptables nft ufw", "flush disable reset", "", "opens the firewall"),
    ("iptables ip6tables", "", "-F --flush -X", "opens the firewall"),
    ("zfs zpool btrfs cryptsetup", "destroy labelclear luksformat luksFormat erase delete", "", "destroys data for good"),
    ("diskutil", "eraseDisk eraseVolume partitionDisk zeroDisk reformat", "", "destroys data for good"),
    ("docker podman", "prune", "", "deletes containers, images or volumes"),
    ("docker podman", "rm rmi", "-f", "deletes containers or images"),
    ("docker podman", "volume", "rm", "deletes volumes"),
    ("docker podman docker-compose", "down", "-v --volumes --rmi", "deletes containers and their volumes"),
    ("kubectl oc helm", "delete drain uninstall", "", _CLOUD),
    ("terraform tofu pulumi vagrant cdk serverless sls minikube kind eksctl", "destroy delete remove", "", _CLOUD),
    ("terraform tofu", "apply", "-destroy --destroy -auto-approve --auto-approve", _CLOUD),
    ("aws", "rb terminate-instances delete-bucket delete-stack delete-db-instance delete-table", "", _CLOUD),
    ("aws", "rm", "-r", _CLOUD),
    ("aws", "sync", "--delete", _CLOUD),
    ("gcloud az gsutil doctl flyctl fly heroku", "delete destroy rm rb apps:destroy pg:reset", "", _CLOUD),
    ("gh", "delete", "", "deletes a repository, release or secret"),
    ("npm pnpm yarn cargo uv poetry flit hatch bun lerna", "publish unpublish yank", "", _PUBLISHED),
    ("twine gem pod", "upload push yank trunk", "", _PUBLISHED),
    ("dropdb dropuser", "", "", _SCHEMA),
    ("redis-cli", "flushall flushdb FLUSHALL FLUSHDB", "", _SCHEMA),
    ("rails rake", "db:drop db:reset db:purge db:schema:load", "", _SCHEMA),
    ("manage django-admin", "flush reset_db sqlflush", "", _SCHEMA),
    ("prisma artisan mix alembic sequelize knex", "reset migrate:fresh migrate:reset db:wipe ecto.drop ecto.reset downgrade db:drop migrate:rollback", "", _SCHEMA),
    ("apt apt-get aptitude dnf yum zypper brew snap flatpak apk", _REMOVED, "", "removes packages"),
    ("pip uv npm pnpm yarn", _REMOVED, "", "removes packages"),
    ("dpkg rpm", "", "-r -P -e --remove --purge --erase", "removes packages"),
    ("pacman", "", "-R --remove", "removes packages"),
    ("git", "push", "-f --force-with-lease --mirror --delete -d --prune +* :*", _FAR_HISTORY),
    ("git", "reset", "--hard --merge", _UNSAVED),
    ("git", "checkout", "-f -- .", _UNSAVED),
    ("git", "switch", "-f --discard-changes", _UNSAVED),
    ("git", "restore", "!--staged", _UNSAVED),
    ("git", "clean", "-f", "deletes files that are not committed"),
    ("git", "branch", "-D", "deletes a branch with its commits"),
    ("git", "tag", "-d --delete", "deletes a tag"),
    ("git", "stash", "drop clear", "deletes stashed changes"),
    ("git", "worktree", "-f", "deletes a work tree with its changes"),
    ("git", "gc prune", "--prune --expire", "deletes the way back to old commits"),
    ("git", "reflog", "expire delete", "deletes the way back to old commits"),
    ("git", "update-ref", "-d", "deletes a reference"),
    ("git", "filter-branch filter-repo", "", "rewrites the whole history"),
)  # fmt: skip
#: Programs whose verb may stand behind another word: `docker system prune`, `uv pip uninstall`.
VERB_PLACES = {
    **dict.fromkeys(("docker", "podman", "kubectl", "oc", "uv", "gh", "helm", "heroku", "az"), 2),
    **dict.fromkeys(("gcloud", "doctl", "flyctl", "fly", "aws", "pulumi", "kind", "minikube"), 3),
    **dict.fromkeys(("chmod", "chown"), 9),
    **dict.fromkeys(("prisma", "zfs", "btrfs"), 2),
}
#: Rows by program.
BY_PROGRAM: dict[str, list[tuple[frozenset[str], tuple[str, ...], str]]] = {}
for _programs, _verbs, _needs, _says in ROWS:
    for _program in _programs.split():
        BY_PROGRAM.setdefault(_program, []).append(
            (frozenset(_verbs.split()), tuple(_needs.split()), _says)
        )
