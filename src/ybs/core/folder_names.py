"""Names of folders that do not hold the project's own code: what was installed or built, and what stands beside it."""

#: What others made, or what is made from the sources.
OTHERS = frozenset({
    "node_modules", "venv", "env", "vendor", "vendors", "target", "dist", "build", "out", "deps",
    "third_party", "thirdparty", "external", "bower_components", "__pycache__", "Pods", "Carthage",
    "obj", "coverage", "site-packages",
})  # fmt: skip
#: Their projects are not what the folder is about.
ASIDE = frozenset({
    "tests", "test", "testing", "spec", "e2e", "t", "examples", "example", "samples", "sample",
    "demo", "demos", "docs", "doc", "documentation", "website", "bench", "benches", "benchmark",
    "benchmarks", "benchsuite", "fixtures", "testdata", "playground", "sandbox", "templates",
    "template", "fuzz", "fuzzing", "extras", "contrib",
})  # fmt: skip
