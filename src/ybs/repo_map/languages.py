"""Languages: which grammar reads a file, and whether its words are worth reading at all."""

import re

#: A name for each grammar, with the suffixes of its files.
_SUFFIXES = {
    "python": "py pyi pyw",
    "javascript": "js mjs cjs jsx",
    "typescript": "ts mts cts",
    "tsx": "tsx",
    "go": "go",
    "rust": "rs",
    "java": "java",
    "c": "c h",
    "cpp": "cc cpp cxx c++ hh hpp hxx h++ ipp tpp inl cu cuh",
    "csharp": "cs csx",
    "ruby": "rb rake gemspec ru",
    "php": "php phtml php3 php4 php5 php7 php8 inc",
    "bash": "sh bash zsh ksh bats",
}
LANGUAGES = tuple(_SUFFIXES)
_OF_SUFFIX = {suffix: name for name, suffixes in _SUFFIXES.items() for suffix in suffixes.split()}
_OF_NAME = {
    **dict.fromkeys(("rakefile", "gemfile", "vagrantfile", "guardfile", "brewfile"), "ruby"),
    **dict.fromkeys((".bashrc", ".bash_profile", ".profile", ".zshrc", ".envrc"), "bash"),
    "sconstruct": "python",
    "sconscript": "python",
}
_OF_PROGRAM = {
    **dict.fromkeys((b"python", b"pypy", b"uv"), "python"),
    **dict.fromkeys((b"sh", b"bash", b"dash", b"zsh", b"ksh", b"ash", b"bats"), "bash"),
    **dict.fromkeys((b"node", b"nodejs", b"bun"), "javascript"),
    **dict.fromkeys((b"deno", b"tsx"), "typescript"),
    **dict.fromkeys((b"ruby", b"jruby", b"rake"), "ruby"),
    b"php": "php",
}

#: Suffixes of sources that no grammar here reads; their words rank them.
_OTHER_SOURCE_SUFFIXES = """
    kt kts swift scala sc dart groovy lua pl pm tcl r jl hs lhs elm ml mli fs fsx ex exs erl clj cljs cljc
    zig nim cr d pas f90 f95 cob cbl ada adb vb m mm sol vue svelte astro ps1 psm1 fish sql
"""
_OTHER_SOURCES = frozenset(_OTHER_SOURCE_SUFFIXES.split())

#: Files whose words say nothing about the project: pictures, archives, programs, data, what tools write.
_WORTHLESS_SUFFIXES = """
    png jpg jpeg gif bmp ico icns webp avif tif tiff psd ai eps svg svgz heic xcf
    mp3 mp4 m4a wav ogg oga ogv flac avi mov mkv webm swf ttf otf woff woff2 eot pfb
    zip gz tgz bz2 xz zst lz4 7z rar tar jar war ear whl egg gem nupkg deb rpm apk dmg iso cab crate
    exe dll so dylib a o obj lib bin class pyc pyo pyd wasm node elc rlib pdb ilk dsym
    pdf doc docx xls xlsx ppt pptx odt ods odp epub mobi rtf
    db sqlite sqlite3 mdb dat parquet feather arrow npy npz pkl pickle h5 hdf5 onnx pt pth safetensors gguf
    ckpt tflite pb csv tsv jsonl ndjson geojson log out
    map lock sum snap snapshot tsbuildinfo orig rej bak swp tmp cache
    pem crt cer der key p12 pfx jks keystore asc sig gpg sha256 md5
    po pot mo xlf min golden approved
"""
_WORTHLESS_NAMES = """
    package-lock.json npm-shrinkwrap.json pnpm-lock.yaml bun.lockb composer.lock packages.lock.json
    project.assets.json gradle-wrapper.jar .ds_store thumbs.db .gitmodules .mailmap contributors
    authors .all-contributorsrc .package-lock.json deno.lock flake.lock pipfile.lock poetry.lock
"""
_OF_NO_WORTH = frozenset(_WORTHLESS_SUFFIXES.split()), frozenset(_WORTHLESS_NAMES.split())
#: In front of the suffix: written by tools.
_WRITTEN = (".min", "-min", ".bundle", ".chunk", ".packed", ".pb", "_pb2", "_pb2_grpc", ".snap")

_CPP_SIGNS = re.compile(
    rb"^[ \t]*(?:class\s+\w|namespace\b|template\s*<|using\s+\w|(?:public|private|protected)\s*:|"
    rb"#\s*include\s*<[a-z_]+>)|\bstd::|\bconstexpr\b|\bvirtual\b|\bnoexcept\b",
    re.MULTILINE,
)


def language_of(path: str, head: bytes = b"") -> str:
    """Return the language of a file by its name and its first bytes; "" when no grammar reads it."""
    name = path.rpartition("/")[2].lower()
    stem, dot, suffix = name.rpartition(".")
    if dot and stem:
        language = _OF_SUFFIX.get(suffix, "")
        if suffix == "h" and _CPP_SIGNS.search(head):
            return "cpp"
        if suffix != "inc" or head.lstrip().startswith(b"<?"):
            return language
        return ""
    return _OF_NAME.get(name) or _of_shebang(head)


def is_source(path: str) -> bool:
    """Return, by its name, whether a file is a program's source, with a grammar or without."""
    return bool(language_of(path)) or path.rpartition(".")[2].lower() in _OTHER_SOURCES


def is_text_source(path: str) -> bool:
    """Return whether the words of a file are worth reading: source, documents and settings, not what tools write."""
    name = path.rpartition("/")[2].lower()
    stem, dot, suffix = name.rpartition(".")
    suffixes, names = _OF_NO_WORTH
    if name in names:
        return False
    return not dot or not (suffix in suffixes or stem.endswith(_WRITTEN))


def _of_shebang(head: bytes) -> str:
    if not head.startswith(b"#!"):
        return ""
    words = head[2:200].split(b"\n", 1)[0].split()
    for word in words:
        program = word.rpartition(b"/")[2]
        if program == b"env" or program.startswith(b"-") or b"=" in program:
            continue
        return _OF_PROGRAM.get(program.rstrip(b"0123456789."), "")
    return ""


def is_packed(data: bytes) -> bool:
    """Return whether a source text was made for machines: its lines are too long to be read."""
    return len(data) > 300 * (data.count(b"\n") + 10)


def utf8_of(data: bytes) -> bytes:
    """Return a source text as UTF-8 without a byte order mark; what is not UTF-16 is taken as it is."""
    if data.startswith(b"\xef\xbb\xbf"):
        return data[3:]
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace").encode("utf-8", "replace")
    return data
