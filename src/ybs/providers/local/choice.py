"""Choose a model for a machine, and how to run it: pure functions of its description, with the reason in words."""

from collections.abc import Sequence
from itertools import groupby
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ybs.core.wording import listed
from ybs.providers.local.hardware import Gpu, Machine, gigabytes

#: Windows in tokens, tried in this order. Without a graphics processor reading is slow, so a larger one has no use.
WINDOWS: Final = (32_768, 16_384, 8_192, 4_096)
CPU_WINDOW: Final = 8_192
#: What may be taken of the memory that is free now: other programs grow too.
FREE_SHARE: Final = 0.95
#: Weights that a processor reads take more than their file: most are kept a second time, packed for it.
CPU_FACTOR: Final = 1.35
#: Buffers beside weights and window, on either side.
CPU_WORK_BYTES: Final = 350_000_000
GPU_WORK_BYTES: Final = 700_000_000
#: What is taken to be free where the system does not say.
UNKNOWN_FREE_BYTES: Final = 4_000_000_000
#: A processor's thread reads so many bytes for a token in good time, but the smallest models are always tried.
BYTES_PER_THREAD: Final = 800_000_000
ALWAYS_BYTES: Final = 1_200_000_000


class Shape(Struct, frozen=True, kw_only=True):
    """What matters of a model file: its size, its layers, the memory of one token in the window, and the longest window.

    `active_share` is the part of it that is read for a token: less than all with a mixture of experts.
    """

    file_bytes: int
    layers: int
    token_bytes: int
    longest: int
    active_share: float = 1.0


class RunPlan(Struct, frozen=True, kw_only=True):
    """How a model is run: its window, the layers on graphics processors, threads, the memory that it takes, and why.

    `threads` write, `reading_threads` read prompts.
    """

    window: int
    gpu_layers: int
    threads: int
    reading_threads: int = 1
    memory_bytes: int
    gpu_bytes: int
    reason: str


class ModelCandidate(Struct, frozen=True, kw_only=True):
    """A model file that a hub has. `name` is the model's own, `quantisation` how its weights are kept."""

    name: str
    quantisation: str
    repository: str
    file: str
    shape: Shape
    sha256: str = ""

    @property
    def full_name(self) -> str:
        """The name that `ybs models download` takes."""
        return f"{self.name}:{self.quantisation}"


def plan(
    machine: Machine, shape: Shape, *, asked_window: int | None = None, threads: int | None = None
) -> RunPlan | None:
    """Return how the machine runs a model, or None where it does not fit into the memory that is free.

    As much of it as fits goes to graphics processors; a window below 8,192 tokens comes last.
    """
    sizes = _windows(shape, asked_window)
    whole = shape.layers + 1 if machine.gpus else 0
    good = asked_window or CPU_WINDOW
    for size in (each for each in sizes if each > good and whole):
        if found := _fit(machine, shape, size, whole, threads):
            return found
    for size in (each for each in sizes if each <= good):
        for layers in range(whole, -1, -1):
            if found := _fit(machine, shape, size, layers, threads):
                return found
    return None


def choose(
    machine: Machine, candidates: Sequence[ModelCandidate]
) -> tuple[ModelCandidate, RunPlan] | None:
    """Return the best model that the machine runs in good time, and how; `candidates` has the best first.

    Where all of it fits on graphics processors with a good window, its best quantisation is taken; else its smallest,
    because what a processor reads for each token decides the speed.
    """
    if machine.free_bytes is None:
        machine = replace(machine, free_bytes=UNKNOWN_FREE_BYTES)
    tight: tuple[ModelCandidate, RunPlan] | None = None
    for _, group in groupby(candidates, key=lambda each: each.name):
        found = [(each, made) for each in group if (made := plan(machine, each.shape))]
        whole = (pair for pair in found if pair[1].gpu_layers and pair[1].window > CPU_WINDOW)
        if best := next(whole, None):
            return best
        if found and _is_fast(found[-1][0].shape, found[-1][1]):
            if found[-1][1].window >= CPU_WINDOW:
                return found[-1]
            tight = tight or found[-1]
    return tight


def smaller(used: RunPlan, shape: Shape) -> RunPlan | None:
    """Return the next smaller way to run a model after `used` failed; None where there is none."""
    if used.gpu_layers:
        layers = used.gpu_layers // 2
        return _made(shape, used.window, layers, _threads_of(used), f"{layers} layers on the GPU")
    windows = [size for size in WINDOWS if size < used.window]
    if not windows:
        return None
    return _made(shape, windows[0], 0, _threads_of(used), f"a window of {windows[0]:,} tokens")


def needs(shape: Shape, window: int, gpu_layers: int) -> tuple[int, int]:
    """Return the bytes that a model takes of the machine's memory and of graphics memory, the latter without buffers."""
    part = gpu_layers / (shape.layers + 1)
    tokens = window * shape.token_bytes
    memory = (shape.file_bytes * CPU_FACTOR + tokens) * (1 - part) + CPU_WORK_BYTES
    return int(memory), int((shape.file_bytes + tokens) * part)


def _windows(shape: Shape, asked: int | None) -> list[int]:
    most = min(shape.longest, asked or WINDOWS[0])
    return sorted({min(size, most) for size in (*WINDOWS, most)}, reverse=True)


def _threads_of(used: RunPlan) -> tuple[int, int]:
    return used.threads, used.reading_threads


def _fit(
    machine: Machine, shape: Shape, window: int, layers: int, asked: int | None
) -> RunPlan | None:
    """Return the plan with this window and these layers on graphics processors, if it fits."""
    memory, on_gpu = needs(shape, window, layers)
    gpus = _gpus_for(machine)
    if layers and on_gpu > sum(map(_room, gpus)):
        return None
    if layers and gpus[0].is_shared:
        memory += on_gpu + GPU_WORK_BYTES
    if machine.free_bytes is not None and memory > machine.free_bytes * FREE_SHARE:
        return None
    threads = (asked or machine.threads, asked or machine.reading_threads)
    return _made(shape, window, layers, threads, _reason(machine, shape, window, layers))


def _gpus_for(machine: Machine) -> list[Gpu]:
    """Return the graphics processors that share a model: those of the maker with the most room, for a server knows one maker's."""
    own = [gpu for gpu in machine.gpus if not gpu.is_shared] or list(machine.gpus)
    makers = dict.fromkeys(gpu.maker for gpu in own)
    by_maker = [[gpu for gpu in own if gpu.maker == maker] for maker in makers]
    return max(by_maker, key=lambda group: sum(map(_room, group))) if by_maker else []


def _room(gpu: Gpu) -> int:
    return max(0, int(gpu.free_bytes * FREE_SHARE) - GPU_WORK_BYTES)


def _made(shape: Shape, window: int, layers: int, threads: tuple[int, int], reason: str) -> RunPlan:
    memory, on_gpu = needs(shape, window, layers)
    return RunPlan(
        window=window,
        gpu_layers=layers,
        threads=threads[0],
        reading_threads=threads[1],
        memory_bytes=memory,
        gpu_bytes=on_gpu,
        reason=reason,
    )


def _reason(machine: Machine, shape: Shape, window: int, layers: int) -> str:
    memory, on_gpu = needs(shape, window, layers)
    if not layers:
        free = "" if machine.free_bytes is None else f" of {gigabytes(machine.free_bytes)} free"
        why = "the graphics memory is too small" if machine.gpus else "there is no GPU to use"
        if machine.idle_gpus:
            why = f"the installed llama.cpp was built without support for {listed([gpu.name for gpu in machine.idle_gpus])}"
        return f"window {window:,}, on the CPU ({why}): {gigabytes(memory)}{free} memory"
    gpus = _gpus_for(machine)
    names = listed([gpu.name for gpu in gpus])
    room = gigabytes(sum(gpu.free_bytes for gpu in gpus))
    how = "all layers" if layers > shape.layers else f"{layers} of {shape.layers} layers"
    return f"window {window:,}, {how} on {names}: {gigabytes(on_gpu)} of {room} free there"


def _is_fast(shape: Shape, made: RunPlan) -> bool:
    """Return whether what the processor reads for each token is little enough for its threads."""
    part = 1 - made.gpu_layers / (shape.layers + 1)
    read = shape.file_bytes * shape.active_share * part
    return read <= max(ALWAYS_BYTES, BYTES_PER_THREAD * made.threads)
