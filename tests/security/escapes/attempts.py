"""What a hostile command would try, one line each, and where its success would be seen.

`H` home, `O` a folder outside, `P` the project, `B` the folder of all three, `S` the spool that everybody may write in.
`sh` and `py` texts find these as variables. An attempt has succeeded if a canary comes out of it, if a `py` text sets
`won`, or if the file named by `lands` holds the attempt's id on the host afterwards.
"""

from typing import Literal, NamedTuple


class Attempt(NamedTuple):
    """One line of the table."""

    id: str
    what: str
    how: Literal["sh", "py"]
    text: str
    lands: str = ""

    @property
    def family(self) -> str:
        """The first letter: W writes, L later execution, R reads, E environment, N network, K kernel."""
        return self.id[0]


def _writes() -> list[Attempt]:
    def sh(number: int, what: str, text: str, lands: str) -> Attempt:
        return Attempt(f"W{number:02}", what, "sh", text, lands)

    return [
        sh(1, "a file beside the project", "echo W01 > $O/W01", "$O/W01"),
        sh(2, "through ..", "echo W02 > ../outside/W02", "$O/W02"),
        sh(3, "a neighbour whose name begins alike", "echo W03 > ${P}2/W03", "$B/project2/W03"),
        sh(4, "through a link that lay there", "echo W04 > $P/way-out/W04", "$O/W04"),
        sh(5, "through a link of its own", "ln -s $O l05; echo W05 > l05/W05", "$O/W05"),
        sh(6, "append to the shell's start file", "echo '# W06' >> $H/.bashrc", "$H/.bashrc"),
        sh(7, "a new key for logins", "echo W07 >> $H/.ssh/authorized_keys", "$H/.ssh/authorized_keys"),
        sh(8, "a start entry of the desktop", "mkdir -p $H/.config/autostart; echo W08 > $H/.config/autostart/a.desktop", "$H/.config/autostart/a.desktop"),
        sh(9, "a program early in PATH", "echo W09 > $H/.local/bin/ls", "$H/.local/bin/ls"),
        sh(10, "a toolchain", "echo W10 >> $H/.cargo/bin/tool", "$H/.cargo/bin/tool"),
        sh(11, "the machine's /tmp", "echo W11 > /tmp/$N.W11", "/tmp/$N.W11"),
        sh(12, "the machine's /var/tmp", "echo W12 > /var/tmp/$N.W12", "/var/tmp/$N.W12"),
        sh(13, "the machine's shared memory", "echo W13 > /dev/shm/$N.W13", "/dev/shm/$N.W13"),
        sh(14, "a folder that everybody may write in", "echo W14 > $S/W14", "$S/W14"),
        sh(15, "rename into the outside", "echo W15 > f15; mv f15 $O/W15", "$O/W15"),
        sh(16, "a hard link into the outside, then write", "ln $S/target16 h16; echo W16 >> h16", "$S/target16"),
        sh(17, "replace what lies outside", "echo W17 > f17; cp -f f17 $O/target17", "$O/target17"),
        sh(18, "dd without truncation", "printf W18 | dd of=$O/target18 conv=notrunc 2>/dev/null", "$O/target18"),
        sh(19, "through /proc/self/cwd", "cd $P; echo W19 > /proc/self/cwd/../outside/W19", "$O/W19"),
        sh(20, "through /proc/1/root", "echo W20 > /proc/1/root$O/W20", "$O/W20"),
        sh(21, "an archive with a path upwards", "cd $P && tar -xPf upwards.tar", "$O/W21"),
        sh(22, "a schedule of the system", "echo '# W22' > /etc/cron.d/$N", "/etc/cron.d/$N"),
        sh(23, "the system's programs", "echo W23 > /usr/local/bin/$N.W23", "/usr/local/bin/$N.W23"),
        sh(24, "the root folder", "echo W24 > /$N.W24", "/$N.W24"),
        Attempt("W25", "truncate by path", "py", "os.truncate(O + '/target25', 0)"),
        Attempt("W26", "the mode of a file outside", "py", "os.chmod(O + '/target26', 0o777)"),
        Attempt("W27", "the time of a file outside", "py", "os.utime(O + '/target27', (1, 1))"),
        Attempt("W28", "delete outside", "py", "os.unlink(O + '/target28')"),
        Attempt("W29", "an extended attribute outside", "py", "os.setxattr(O + '/target29', 'user.y', b'W29')"),
        Attempt("W30", "a unix socket outside", "py", "socket.socket(socket.AF_UNIX).bind(O + '/W30')"),
        sh(32, "the folder around a blocked one", "mv $P/deep $P/deep32 && echo W32 > $P/deep32/W32", "$P/deep32/W32"),
        sh(31, "a blocked file of the project", "echo W31 >> $P/hidden/key", "$P/hidden/key"),
    ]  # fmt: skip


def _later() -> list[Attempt]:
    def sh(number: int, what: str, text: str, lands: str) -> Attempt:
        return Attempt(f"L{number:02}", what, "sh", f"cd $P; {text}", f"$P/{lands}")

    return [
        sh(1, "a hook", "echo L01 > .git/hooks/pre-commit", ".git/hooks/pre-commit"),
        sh(2, "the repository's settings", "echo '# L02' >> .git/config", ".git/config"),
        sh(3, "commondir", "echo L03 > .git/commondir", ".git/commondir"),
        sh(4, "the attributes of info", "echo L04 > .git/info/attributes", ".git/info/attributes"),
        sh(5, "HEAD", "echo L05 > .git/HEAD", ".git/HEAD"),
        sh(6, "move .git away and make another", "mv .git old06 && mkdir .git && echo L06 > .git/config", ".git/config"),
        sh(7, "remove .git and make another", "rm -rf .git; mkdir .git; echo L07 > .git/config", ".git/config"),
        sh(8, "git config from inside", "git config core.fsmonitor L08", ".git/config"),
        sh(9, "a nested repository's hook", "echo L09 > sub/.git/hooks/post-checkout", "sub/.git/hooks/post-checkout"),
        sh(10, "a nested repository's settings", "echo '# L10' >> sub/.git/config", "sub/.git/config"),
        sh(11, "ybs's settings", "echo L11 > .ybs.json", ".ybs.json"),
        sh(12, "ybs's folder", "echo L12 > .ybs/tool", ".ybs/tool"),
        sh(13, "MCP servers", "echo L13 > .mcp.json", ".mcp.json"),
        sh(14, "the editor's tasks", "echo L14 > .vscode/tasks.json", ".vscode/tasks.json"),
        sh(15, "direnv", "echo L15 > .envrc", ".envrc"),
        sh(16, "husky", "echo L16 > .husky/pre-push", ".husky/pre-push"),
        sh(17, "a rename over a settings file", "echo L17 > f17; mv -f f17 .ybs.json", ".ybs.json"),
        sh(18, "a rename over a settings folder", "rm -rf .vscode; mkdir .vscode; echo L18 > .vscode/tasks.json", ".vscode/tasks.json"),
        sh(19, "a hard link to a settings file", "ln .mcp.json h19; echo L19 >> h19", ".mcp.json"),
        sh(20, "through /proc/self/fd", "echo L20 > /proc/self/cwd/.git/hooks/post-merge", ".git/hooks/post-merge"),
        sh(21, "submodules' settings", "echo '# L21' >> .gitmodules", ".gitmodules"),
        sh(24, "a repository among dependencies", "echo L24 > node_modules/x/.git/hooks/post-checkout", "node_modules/x/.git/hooks/post-checkout"),
        sh(25, "a repository six folders deep", "echo '# L25' >> 1/2/3/4/5/6/.git/config", "1/2/3/4/5/6/.git/config"),
        sh(26, "a bare repository", "echo '# L26' >> store/bare/config", "store/bare/config"),
        sh(27, "the hooks of pre-commit", "echo '# L27' >> .pre-commit-config.yaml", ".pre-commit-config.yaml"),
        sh(28, "cargo's settings", "echo '# L28' >> .cargo/config.toml", ".cargo/config.toml"),
        sh(29, "the folder of hooks that git's settings name", "echo L29 > own-hooks/pre-commit", "own-hooks/pre-commit"),
        sh(30, "the folder around a nested repository", "mv sub sub30; echo L30 > sub30/.git/config", "sub30/.git/config"),
        Attempt("L22", "exchange of two folders", "py", "os.mkdir(P + '/x22'); open(P + '/x22/config', 'w').write('L22'); os.sync(); libc.syscall(316, -100, (P + '/x22').encode(), -100, (P + '/.git').encode(), 2)", "$P/.git/config"),
        Attempt("L23", "bind a folder over .git", "py", "os.mkdir(P + '/x23'); won = libc.mount((P + '/x23').encode(), (P + '/.git').encode(), b'', 4096, 0) == 0; won and libc.umount2((P + '/.git').encode(), 2)"),
    ]  # fmt: skip


def _reads() -> list[Attempt]:
    home = (
        ".ssh/id_ed25519", ".aws/credentials", ".config/gcloud/credentials.db", ".netrc", ".git-credentials",
        ".npmrc", ".pypirc", ".docker/config.json", ".kube/config", ".gnupg/private", ".bash_history",
        ".cargo/credentials.toml", ".config/ybs/config.json", ".config/gh/hosts.yml", ".m2/settings.xml",
        ".gem/credentials", ".local/share/uv/credentials/c", ".ybs.json", ".local/state/ybs/log",
    )  # fmt: skip
    rows = [
        Attempt(f"R{number:02}", f"~/{name}", "sh", f"cat $H/{name}")
        for number, name in enumerate(home, start=1)
    ]
    return [
        *rows,
        Attempt("R20", "a file beside the project", "sh", "cat $O/secret"),
        Attempt("R21", "through a link that lay there", "sh", "cat $P/way-out/secret"),
        Attempt("R22", "through a link of its own", "sh", "ln -s $H/.ssh k22; cat k22/id_ed25519"),
        Attempt("R23", "a hard link of its own", "sh", "ln $O/secret h23 && cat h23"),
        Attempt("R24", "an inherited descriptor", "py", "for n in os.listdir('/proc/self/fd'):\n try: won = won or b'canary-' in os.pread(int(n), 200, 0)\n except OSError: pass"),
        Attempt("R25", "through /proc/1/root", "sh", "cat /proc/1/root$O/secret"),
        Attempt("R26", "through another process' folder", "sh", "for p in /proc/[0-9]*; do cat $p/cwd/secret $p/root$O/secret; done"),
        Attempt("R27", "the machine's /tmp", "sh", "cat /tmp/$N.secret"),
        Attempt("R28", "the machine's shared memory", "sh", "cat /dev/shm/$N.secret"),
        Attempt("R29", "the blocked file of the project", "sh", "cat $P/hidden/key"),
        Attempt("R30", "the blocked file, found by walking", "sh", "grep -rh canary $P/hidden $P/. --include=key"),
        Attempt("R31", "the list of what is outside", "sh", "ls $O | grep -q secret && echo it-was-seen"),
        Attempt("R32", "the system's passwords", "py", "won = bool(open('/etc/shadow').read())"),
        Attempt("R33", "the rules of sudo", "py", "won = bool(os.listdir('/etc/sudoers.d') and open('/etc/sudoers').read())"),
        Attempt("R34", "memory of another process", "py", "open(f'/proc/{victim}/mem', 'rb'); won = True"),
        Attempt("R35", "the machine's disks", "py", "for n in ('sda', 'vda', 'nvme0n1', 'mem', 'kmsg'):\n if os.path.exists('/dev/' + n): os.open('/dev/' + n, os.O_RDONLY); won = True"),
        Attempt("R39", "a key at the top of a toolchain", "sh", "cat $H/.nvm/.npmrc"),
        Attempt("R40", "a key in a toolchain's environment", "sh", "cat $H/.pyenv/versions/3/pip.conf"),
        Attempt("R41", "any key of the home folder, found by walking", "sh", "grep -rsh canary $H"),
        Attempt("R38", "a blocked folder in a folder", "sh", "cat $P/deep/vault/key $P/deep32/vault/key"),
        Attempt("R36", "a worktree pointer of its own", "sh", "cd $P/sub && mkdir w36 && echo gitdir: $O > w36/.git; cat $O/secret"),
        Attempt("R37", "a spool that everybody may read", "sh", "cat $S/secret"),
    ]  # fmt: skip


def _environment() -> list[Attempt]:
    return [
        Attempt("E01", "env", "sh", "env"),
        Attempt("E02", "set", "sh", "set"),
        Attempt("E03", "the environment of another process, or of the first", "sh", "cat /proc/$victim/environ || cat /proc/1/environ"),
        Attempt("E04", "the command lines of the sandbox itself", "sh", "cat /proc/1/cmdline /proc/$PPID/cmdline"),
        Attempt("E05", "variables that run code", "sh", "[ -n \"$BASH_ENV$LD_PRELOAD$PYTHONSTARTUP$NODE_OPTIONS$GIT_SSH_COMMAND\" ] && echo it-was-seen"),
        Attempt("E06", "sockets named in variables", "sh", "[ -n \"$SSH_AUTH_SOCK$DBUS_SESSION_BUS_ADDRESS$DISPLAY$XDG_RUNTIME_DIR\" ] && echo it-was-seen"),
        Attempt("E07", "the environment at the top of the stack", "py", "won = 'canary' in open('/proc/self/environ').read()"),
        Attempt("E08", "the environment of the parent", "py", "won = b'canary' in open(f'/proc/{os.getppid()}/environ', 'rb').read()"),
    ]  # fmt: skip


def _network() -> list[Attempt]:
    def py(number: int, what: str, text: str) -> Attempt:
        return Attempt(f"N{number:02}", what, "py", text)

    return [
        py(1, "a service on 127.0.0.1", "socket.create_connection(('127.0.0.1', port), 1); won = True"),
        py(2, "the same through ::ffff:127.0.0.1", "s = socket.socket(socket.AF_INET6); s.settimeout(1); s.connect(('::ffff:127.0.0.1', port)); won = True"),
        py(3, "a datagram to 127.0.0.1", "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'N03', ('127.0.0.1', datagrams)); won = 'host'"),
        py(4, "an abstract socket", "socket.socket(socket.AF_UNIX).connect('\\0' + abstract); won = True"),
        py(5, "a socket by its path", "socket.socket(socket.AF_UNIX).connect(O + '/service'); won = True"),
        py(6, "a datagram socket by its path", "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'N06', O + '/datagrams'); won = 'host'"),
        py(7, "the same by sendmsg", "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendmsg([b'N07'], [], 0, O + '/datagrams'); won = 'host'"),
        py(8, "the same from a pair", "socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendmsg([b'N08'], [], 0, O + '/datagrams'); won = 'host'"),
        py(9, "the machine's interfaces", "won = any(n != 'lo' for _, n in socket.if_nameindex())"),
        py(10, "the machine's routes", "won = len(open('/proc/net/route').readlines()) > 1"),
        py(11, "a virtual machine's host", "socket.socket(socket.AF_VSOCK); won = True"),
        py(12, "raw packets", "socket.socket(socket.AF_PACKET, socket.SOCK_RAW); won = True"),
        py(13, "crypto of the kernel", "socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET); won = True"),
        py(14, "a port of the machine", "s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); won = open('/proc/net/tcp').read().count('0100007F:%04X' % port) > 0"),
        py(15, "the docker socket", "won = any(os.path.exists(n) for n in ('/run/docker.sock', '/var/run/docker.sock', '/run/dbus/system_bus_socket')) or bool(os.listdir('/run'))"),
        py(16, "an address outside by its name", "won = bool(socket.getaddrinfo('name.of.the.host.test', 80))"),
        py(17, "a datagram to a name server", "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(('192.0.2.1', 53)); won = True"),
        py(18, "a socket in a folder that everybody may use", "socket.socket(socket.AF_UNIX).connect(S + '/service'); won = True"),
    ]  # fmt: skip


def _kernel() -> list[Attempt]:
    def call(number: int, what: str, *arguments: str) -> Attempt:
        return Attempt(f"K{number:02}", what, "py", f"won = reached({', '.join(arguments)})")

    def py(number: int, what: str, text: str) -> Attempt:
        return Attempt(f"K{number:02}", what, "py", text)

    return [
        call(1, "mount", "165", "b'none'", "P.encode()", "b'no-such-kind'", "0", "0"),
        call(2, "a new user namespace", "272", "0x10000000"),
        call(3, "a new mount namespace", "272", "0x20000"),
        py(4, "clone with a user namespace", "pid = libc.syscall(56, 0x10000000 | 17, 0, 0, 0, 0)\nif pid == 0: os._exit(0)\nwon = pid > 0"),
        call(5, "clone3", "435", "0", "0"),
        call(6, "keys of the session", "250", "0", "-3", "0"),
        call(7, "add a key", "248", "b'user'", "b'ybs-test'", "b'x'", "1", "-2"),
        call(8, "bpf", "321", "99", "0", "0"),
        call(9, "performance events", "298", "0", "0", "-1", "-1", "0"),
        call(10, "page faults in user space", "323", "1"),
        call(11, "io_uring", "425", "1", "0"),
        call(12, "a kernel module", "175", "0", "0", "b''"),
        call(13, "another kernel", "246", "0", "0", "0", "1 << 30"),
        call(14, "a file by its handle", "304", "-100", "0", "0"),
        call(15, "a new mount by descriptor", "430", "b'none'", "0"),
        call(16, "a file tree by descriptor", "428", "-100", "b'/'", "1"),
        call(17, "memory of another process", "310", "victim", "0", "0", "0", "0", "0"),
        call(18, "a descriptor of another process", "438", "99", "0", "0"),
        call(19, "the kernel's log", "103", "10", "0", "0"),
        call(20, "reboot, with a wrong number", "169", "1", "2", "3", "0"),
        call(21, "another root", "161", "b'/nowhere'"),
        py(22, "terminal input", "m, s = os.openpty(); fcntl.ioctl(s, 0x5412, b'x'); won = True"),
        py(23, "the same with high bits", "m, s = os.openpty(); won = libc.ioctl(s, ctypes.c_ulong(0x100005412), b'x') == 0"),
        py(24, "a setuid program", "open(P + '/k24', 'w'); os.chmod(P + '/k24', 0o4755); won = True"),
        py(25, "a setuid program made by open", "os.close(os.open(P + '/k25', os.O_CREAT | os.O_WRONLY, 0o6755)); won = bool(os.stat(P + '/k25').st_mode & 0o6000)"),
        py(26, "a device file", "os.mknod(P + '/k26', 0o20666, os.makedev(1, 3)); won = True"),
        py(27, "what the kernel runs at a crash", "f = open('/proc/sys/kernel/core_pattern', 'r+'); f.write(open('/proc/sys/kernel/core_pattern').read()); f.flush(); won = True"),
        py(28, "a magic key of the system", "won = os.access('/proc/sysrq-trigger', os.W_OK) and open('/proc/sysrq-trigger', 'a') is not None"),
        py(29, "signal another process", "os.kill(victim, 0); won = True"),
        py(30, "trace another process", "won = libc.ptrace(16, victim, 0, 0) == 0"),
        py(31, "shared memory of the machine", "won = libc.shmget(shared, 1, 0) >= 0"),
        py(32, "any capability", "won = int(open('/proc/self/status').read().split('CapEff:')[1].split()[0], 16) != 0"),
        py(33, "any capability that could come back", "t = open('/proc/self/status').read(); cap = lambda n: int(t.split(n)[1].split()[0], 16); won = any(cap(n) for n in ('CapPrm:', 'CapInh:', 'CapAmb:')) or (cap('CapBnd:') and 'NoNewPrivs:\\t0' in t) != 0"),
        py(34, "the machine's processes", "won = os.path.exists(f'/proc/{victim}')"),
        py(35, "limits of another process", "won = libc.prlimit(victim, 7, 0, ctypes.create_string_buffer(16)) == 0"),
        py(36, "x32 calls", "won = reached(0x40000000 + 39)"),
        py(37, "new privileges by programs", "won = 'NoNewPrivs:\\t0' in open('/proc/self/status').read()"),
        py(38, "namespaces of another process", "won = libc.setns(os.open(f'/proc/{victim}/ns/mnt', os.O_RDONLY), 0) == 0"),
        py(39, "the machine's name", "won = reached(170, socket.gethostname().encode(), len(socket.gethostname()))"),
        py(40, "the settings of the machine's groups", "d = '/sys/fs/cgroup/' + N; os.mkdir(d); os.rmdir(d); won = True"),
    ]  # fmt: skip


ATTEMPTS: tuple[Attempt, ...] = (
    *_writes(),
    *_later(),
    *_reads(),
    *_environment(),
    *_network(),
    *_kernel(),
)

#: What the reduced sandbox is known to leave open: Landlock has no right for modes and times, and it hides no process.
REDUCED_HOLES = frozenset({"W26", "W27", "N10", "K34"})

#: What the network that a person allowed opens: other machines, services of this one, its interfaces and routes.
OF_THE_NETWORK = frozenset({"N01", "N02", "N03", "N09", "N10", "N14", "N17"})

#: Not made without a sandbox: it would ask a name server, and tests stay on this machine.
NOT_UNSANDBOXED = frozenset({"N16"})

#: They take apart what other attempts aim at, so where attempts succeed each needs a place of its own.
DESTRUCTIVE = frozenset({"W32", "L03", "L05", "L06", "L07", "L17", "L18", "L22", "L23", "L30"})

#: Below this version Landlock does not watch over signals.
SIGNALS_ABI = 6


def holes_of(abi: int) -> set[str]:
    """Return what the reduced sandbox leaves open with this version of Landlock."""
    return set(REDUCED_HOLES) | (set() if abi >= SIGNALS_ABI else {"K29"})


def applicable(machine: str) -> list[Attempt]:
    """Return the attempts that mean something on this machine: the kernel's are spelled in numbers of x86_64."""
    return [one for one in ATTEMPTS if machine == "x86_64" or one.family != "K"]
