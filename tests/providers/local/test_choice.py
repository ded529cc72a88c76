"""What is chosen for two dozen machines, and that nothing chosen needs more memory than there is."""

from itertools import product

import pytest
from msgspec.structs import replace

from rows import every_row
from ybs.providers.local.choice import RunPlan, Shape, choose, plan, smaller
from ybs.providers.local.hardware import Gpu, Machine
from ybs.providers.local.hub import CANDIDATES

CODER_7B = Shape(file_bytes=4_700_000_000, layers=28, token_bytes=57_344, longest=32_768)


def billions(count: float) -> int:
    return int(count * 1e9)


def card(name: str, total: float, free: float | None = None) -> Gpu:
    """Make a card; a desktop takes half a gigabyte of it."""
    maker = "amd" if name.startswith("Radeon") else "nvidia"
    left = total - 0.5 if free is None else free
    return Gpu(maker=maker, name=name, total_bytes=billions(total), free_bytes=billions(left))


def machine(cores: int, memory: float, free: float, *gpus: Gpu) -> Machine:
    return Machine(cores=cores, memory_bytes=billions(memory), free_bytes=billions(free), gpus=gpus)


def mac(cores: int, memory: float, free: float) -> Machine:
    most = 0.7 * memory
    gpu = Gpu(
        maker="apple",
        name="Apple GPU",
        total_bytes=billions(most),
        free_bytes=billions(min(most, free)),
        is_shared=True,
    )
    return machine(cores, memory, free, gpu)


C, Q3 = "qwen2.5-coder", "qwen3-coder-30b"
#: Machine, the model that is chosen, its window, and the layers on graphics processors (all: one more than the model has).
MACHINES = [
    ("a board computer", machine(4, 1, 0.6), "", 0, 0),
    ("two gigabytes", machine(2, 2, 1.3), f"{C}-0.5b:q4_k_m", 8192, 0),
    ("an old laptop", machine(2, 4, 2.5), f"{C}-1.5b:q4_k_m", 8192, 0),
    ("two cores", machine(2, 24, 20), f"{C}-1.5b:q4_k_m", 8192, 0),
    ("a small office machine", machine(4, 8, 5), f"{C}-1.5b:q4_k_m", 8192, 0),
    ("the same, busy", machine(4, 8, 1.5), f"{C}-0.5b:q4_k_m", 8192, 0),
    ("a laptop", machine(8, 16, 11), f"{C}-7b:q4_k_m", 8192, 0),
    ("a desktop without a card", machine(8, 32, 27), f"{C}-7b:q4_k_m", 8192, 0),
    ("a server without a card", machine(64, 512, 480), f"{Q3}:q4_k_m", 8192, 0),
    ("a card of 4 GB", machine(8, 16, 12, card("GTX 1650", 4)), f"{C}-7b:q4_k_m", 8192, 14),
    ("a card of 6 GB", machine(8, 16, 12, card("RTX 3060 Laptop", 6)), f"{C}-14b:q4_k_m", 8192, 20),
    ("a card of 8 GB", machine(8, 32, 26, card("RTX 3070", 8)), f"{Q3}:q4_k_m", 8192, 16),
    ("a card of 24 GB", machine(16, 64, 58, card("RTX 4090", 24)), f"{Q3}:q4_k_m", 16_384, 49),
    ("that card, in use", machine(16, 64, 58, card("RTX 4090", 24, 3)), f"{Q3}:q4_k_m", 8192, 5),
    (
        "two cards of 24 GB",
        machine(16, 64, 58, card("RTX 3090", 24), card("RTX 3090", 24)),
        f"{Q3}:q8_0",
        32_768,
        49,
    ),
    (
        "a Radeon of 8 GB",
        machine(6, 16, 12, card("Radeon RX 6600", 8)),
        f"{C}-14b:q4_k_m",
        8192,
        29,
    ),
    (
        "a Radeon that is a part of the processor",
        machine(8, 16, 12, card("Radeon 780M", 0.5, 0.2)),
        f"{C}-7b:q4_k_m",
        8192,
        0,
    ),
    (
        "cards of two makers, of which a server uses one",
        machine(8, 16, 12, card("Radeon 780M", 4), card("RTX 4060 Laptop", 8)),
        f"{C}-14b:q4_k_m",
        8192,
        29,
    ),
    (
        "a card that the installed llama.cpp has no code for",
        replace(machine(8, 16, 11), idle_gpus=(card("RTX 4090", 24),)),
        f"{C}-7b:q4_k_m",
        8192,
        0,
    ),
    ("a Mac of 8 GB", mac(4, 8, 4), f"{C}-1.5b:q8_0", 16_384, 29),
    ("a Mac of 16 GB", mac(4, 16, 11), f"{C}-7b:q8_0", 16_384, 29),
    ("a Mac of 64 GB", mac(10, 64, 55), f"{Q3}:q8_0", 32_768, 49),
    ("a Mac that is full", mac(8, 16, 1.3), f"{C}-0.5b:q4_k_m", 8192, 0),
    ("a system that says nothing", Machine(cores=4), f"{C}-1.5b:q4_k_m", 8192, 0),
]


def fits(found: RunPlan, chosen: Shape, here: Machine) -> bool:
    """Count anew what a model takes, in another way than the choice does."""
    share = found.gpu_layers / (chosen.layers + 1)
    weights, tokens = chosen.file_bytes, found.window * chosen.token_bytes
    on_cards = share * (weights + tokens)
    in_memory = (1 - share) * (weights + tokens)
    if here.gpus and here.gpus[0].is_shared:
        return on_cards + in_memory <= (here.free_bytes or 0)
    cards = max(
        (
            sum(gpu.free_bytes for gpu in here.gpus if gpu.maker == maker)
            for maker in ("nvidia", "amd")
        ),
        default=0,
    )
    return on_cards <= cards and in_memory <= (here.free_bytes or billions(4))


@pytest.mark.integration
@every_row(("name", "here", "expected", "window", "layers"), MACHINES)
def test_each_machine_gets_the_best_model_that_it_runs_well(name, here, expected, window, layers):
    found = choose(here, CANDIDATES)
    if not expected:
        assert found is None, name
        return
    assert found is not None, name
    candidate, made = found
    assert (candidate.full_name, made.window, made.gpu_layers) == (expected, window, layers), name
    assert fits(made, candidate.shape, here), name
    assert f"window {window:,}" in made.reason


@pytest.mark.integration
def test_nothing_that_is_chosen_needs_more_memory_than_there_is():
    """Many machines that nobody made up one by one."""
    sizes = (0.5, 1.5, 4, 12, 48)
    shapes = {each.shape for each in CANDIDATES if each.quantisation == "q4_k_m"}
    checked = 0
    for free, video in product(sizes, (0, *sizes)):
        cards = [card("RTX", video, video)] if video else []
        here = (
            machine(8, free, free, *cards),
            machine(2, free, free, *cards * 2),
            mac(8, 99, free),
        )
        for each, shape in product(here, shapes):
            if (made := plan(each, shape)) is not None:
                assert fits(made, shape, each), (each, shape, made)
                checked += 1
    assert checked > 150


@every_row(
    ("asked", "window"),
    [(None, 8192), (2048, 2048), (8192, 8192), (16_384, 16_384), (100_000, 32_768)],
)
def test_a_window_that_the_person_asks_for_is_given_where_the_model_has_it(asked, window):
    made = plan(machine(8, 64, 60), CODER_7B, asked_window=asked)
    assert made is not None
    assert made.window == window


def test_a_window_that_does_not_fit_is_made_smaller_rather_than_refused():
    made = plan(machine(8, 8, 7.5), CODER_7B, asked_window=32_768)
    assert made is not None
    assert made.window == 4096


def test_a_model_with_a_short_window_gets_no_longer_one():
    made = plan(machine(8, 16, 12), Shape(file_bytes=10**9, layers=4, token_bytes=1, longest=2048))
    assert made is not None
    assert made.window == 2048


def test_threads_that_the_person_asks_for_are_taken():
    made = plan(machine(8, 16, 12), CODER_7B, threads=3)
    assert made is not None
    assert (made.threads, made.reading_threads) == (3, 3)


def test_after_a_failure_there_is_less_each_time_and_an_end_to_it():
    used = plan(machine(8, 16, 12, card("RTX", 80)), CODER_7B)
    assert used is not None
    steps = [(used.gpu_layers, used.window)]
    while (less := smaller(used, CODER_7B)) is not None:
        assert less.reason
        assert less.gpu_bytes + less.memory_bytes > 0
        used = less
        steps.append((used.gpu_layers, used.window))
    assert steps == sorted(steps, reverse=True)
    assert steps[0] == (29, 32_768)
    assert steps[-1] == (0, 4096)
    assert len(steps) == len(set(steps)) == 9


def test_the_reason_says_where_the_model_is_and_why():
    on_cpu, small_card = machine(8, 16, 12), machine(8, 16, 12, card("RTX 3060", 6))
    idle = replace(on_cpu, idle_gpus=small_card.gpus)
    reasons = [plan(here, CODER_7B) for here in (on_cpu, idle, small_card, mac(8, 64, 60))]
    words = [made.reason for made in reasons if made is not None]
    assert words == [
        "window 8,192, on the CPU (there is no GPU to use): 7.2 GB of 12.0 GB free memory",
        "window 8,192, on the CPU (the installed llama.cpp was built without support for RTX 3060): 7.2 GB of 12.0 GB free memory",
        "window 8,192, 25 of 28 layers on RTX 3060: 4.5 GB of 5.5 GB free there",
        "window 32,768, all layers on Apple GPU: 6.6 GB of 44.8 GB free there",
    ]
