"""Solvers that run tools: moved on in threads, closed whatever happens, in every way of asking."""

import threading

import msgspec
import pytest

from harness.core import registry
from harness.core.environment import ToolResult
from harness.core.errors import HarnessError
from harness.core.types import Output, Usage
from harness.runner import attempts, execute
from harness.runner.attempts import cores

WAIT = 30  # seconds; a test that waits so long has failed


class Place:
    """An environment that says when it is entered, called, killed and left."""

    tools = ()

    def __init__(self, hall, item_id) -> None:
        self.hall, self.item_id = hall, item_id
        self.killed = threading.Event()

    def __enter__(self):
        with self.hall.lock:
            self.hall.n_open += 1
        return self

    def __exit__(self, kind, error, trace) -> None:
        with self.hall.lock:
            self.hall.n_open -= 1
            self.hall.ended_by[self.item_id] = kind and kind.__name__

    def call(self, call, wall_s):
        return self.hall.work(self)

    def kill(self) -> None:
        self.killed.set()


class Hall:
    """Keeps the books over all places."""

    def __init__(self, house) -> None:
        self.house = house
        self.lock = threading.Lock()
        self.n_open = 0
        self.ended_by: dict[str, str | None] = {}
        self.work = lambda place: ToolResult(text="done")
        make = house.task

        def task(request):
            return msgspec.structs.replace(
                make(request),
                environment=lambda sample, request: Place(self, sample.item_id),
                toolset={"name": "hall", "version": 1},
            )

        registry.task("own/add", n=12)(task)


class Worker:
    """A solver of two requests with a tool between them."""

    needs = ("generate",)
    works_locally = True

    def __call__(self, item):
        with item.environment() as place:
            yield item.ask()
            place.call(None, 1.0)
            return (yield item.ask(turn=1))


@pytest.fixture
def hall(house):
    registry.solver("worker")(Worker)
    house.solver = "worker"
    return Hall(house)


@pytest.fixture(params=["batches", "side by side"])
def model(request, house):
    """The two ways of asking a model."""

    def make(spec, options):
        made = house.backend(spec, options)
        if request.param == "side by side":
            made.max_connections = 4
        return made

    registry.backend("both")(make)
    return "both:a"


def test_every_attempt_is_made_and_every_place_is_left(hall, house, model):
    run = house.run(model)
    assert (run.status, run.metrics["accuracy"].value) == ("done", 1.0)
    assert sorted(house.calls) == sorted([s.item_id for s in house.samples] * 2)
    assert hall.n_open == 0
    assert hall.ended_by == dict.fromkeys((s.item_id for s in house.samples), None)
    turns = [e.data["turn"] for e in house.events(run.run_id) if e.kind == "model_call"]
    assert (turns.count(0), turns.count(1)) == (12, 12)


def test_a_tool_that_waits_holds_up_no_other_attempt(hall, house, model, monkeypatch):
    """The tool of one item returns only when all the others are through: no deadlock, no order."""
    monkeypatch.setattr(execute, "cores", lambda: 2)
    others = {s.item_id for s in house.samples} - {"i000"}
    last = threading.Event()

    def answer(request):
        if request.turn == 1:
            others.discard(request.item_id)
            if not others:
                last.set()
        return house.solve(request)

    def work(place):
        if place.item_id == "i000":
            assert last.wait(WAIT)
        return ToolResult(text="done")

    house.answer, hall.work = answer, work
    run = house.run(model)
    assert (run.status, run.n_scored) == ("done", 12)
    assert house.records(run.run_id)[-1].item_id == "i000"


def test_as_many_tools_at_once_as_there_are_cores(hall, house, model, monkeypatch):
    monkeypatch.setattr(execute, "cores", lambda: 3)
    meeting = threading.Barrier(3, timeout=WAIT)
    busy, most, begun = 0, 0, 0

    def work(place):
        nonlocal busy, most, begun
        with hall.lock:
            busy += 1
            most = max(most, busy)
            begun += 1
            is_first = begun <= 3
        if is_first:  # later ones may be fewer: the others wait for a batch of the model's
            meeting.wait()  # passes only when three work at the same time
        with hall.lock:
            busy -= 1
        return ToolResult(text="done")

    hall.work = work
    assert house.run(model, batch_size=4).status == "done"
    assert most == 3
    assert cores() >= 1


def test_a_batch_waits_for_half_of_the_attempts(hall, house):
    """Tools take time: asking for each answer alone would waste the model's batches."""
    house.run("count:a", batch_size=4)
    assert sum(house.batches) == 24
    assert min(house.batches[:-2]) >= 2


@pytest.mark.parametrize("stop", [KeyboardInterrupt, HarnessError("wrong key")])
def test_when_the_run_stops_boxes_are_killed_and_generators_closed(
    hall, house, model, monkeypatch, stop
):
    """One attempt is in its tool, others wait for the model, when a request stops the run."""
    monkeypatch.setattr(execute, "cores", lambda: 2)
    in_tool = threading.Event()

    def work(place):
        if place.item_id == "i000":
            in_tool.set()
            assert place.killed.wait(WAIT)
        return ToolResult(text="done")

    def answer(request):
        if request.turn == 1:
            assert in_tool.wait(WAIT)
            raise stop
        return house.solve(request)

    house.answer, hall.work = answer, work
    with pytest.raises(HarnessError, match=r"[Gg]o on with"):
        house.run(model)
    assert hall.n_open == 0
    # The one in its tool came back and was closed at its next request, as the others were.
    assert hall.ended_by["i000"] == "GeneratorExit"
    assert set(hall.ended_by.values()) == {"GeneratorExit"}
    (run_id,) = house.store.run_ids()
    assert house.records(run_id) == []
    house.answer, hall.work = house.solve, lambda place: ToolResult(text="done")
    assert house.resume(run_id).metrics["accuracy"].value == 1.0


def test_a_tool_that_cannot_be_killed_does_not_hold_the_run(hall, house, model, monkeypatch):
    monkeypatch.setattr(attempts, "CLOSE_SECONDS", 0.05)
    monkeypatch.setattr(execute, "cores", lambda: 2)
    in_tool, over = threading.Event(), threading.Event()

    def work(place):
        if place.item_id == "i000":
            in_tool.set()
            over.wait(WAIT)
        return ToolResult(text="done")

    def answer(request):
        if request.turn == 1:
            assert in_tool.wait(WAIT)
            raise HarnessError("stop")
        return house.solve(request)

    house.answer, hall.work = answer, work
    with pytest.raises(HarnessError, match="stop; "):
        house.run(model)
    over.set()


def test_at_a_limit_what_is_under_way_is_finished(hall, house, model):
    house.answer = lambda request: Output(text="1", usage=Usage(5, 5))
    run = house.run(model, max_total_tokens=10)
    assert run.status == "partial"
    assert hall.n_open == 0
    assert 0 < len(house.records(run.run_id)) < 12


def test_what_a_solver_raises_stays_with_its_item(hall, house, model):
    def work(place):
        if place.item_id == "i003":
            raise ValueError("broken tool")
        return ToolResult(text="done")

    hall.work = work
    run = house.run(model)
    assert (run.counts["error_harness"], run.n_scored) == (1, 11)
    faults = [r for r in house.records(run.run_id) if r.error]
    assert [(r.attempt, r.error) for r in faults] == [
        (k, "ValueError: broken tool") for k in (1, 2, 3)
    ]
    assert hall.n_open == 0


def test_a_usage_error_stops_the_run_at_once(hall, house, model):
    def work(place):
        raise HarnessError("no such level")

    hall.work = work
    with pytest.raises(HarnessError, match="no such level; what is done"):
        house.run(model)
    assert hall.n_open == 0


def test_an_ordinary_solver_is_closed_too(house, model):
    closed = []

    @registry.solver("plain")
    class Plain:
        needs = ("generate",)

        def __call__(self, item):
            try:
                return (yield item.ask())
            finally:
                closed.append(item.sample.item_id)

    def answer(request):
        raise HarnessError("wrong key")

    house.answer = answer
    with pytest.raises(HarnessError, match="wrong key"):
        house.run(model, solver="plain")
    assert len(closed) >= 1
    assert len(closed) == len(set(closed))


def test_a_wrong_request_closes_the_solver(hall, house, model):
    @registry.solver("odd")
    class Odd(Worker):
        def __call__(self, item):
            with item.environment():
                yield "what?"

    run = house.run(model, solver="odd")
    assert run.counts["error_harness"] == 12
    assert hall.n_open == 0
    assert {r.error for r in house.records(run.run_id)} == {
        "TypeError: the solver asked for a str"
    }  # fmt: skip


# The key: whatever decides what a tool's output tells the model, and nothing of it elsewhere.
FLIPS = [
    ("tool set", lambda hall: {"name": "hall", "version": 2}, {}),
    ("limits", lambda hall: {"name": "hall", "version": 1, "limits": {"wall_s": 9}}, {}),
    ("sandbox", None, {"sandbox": "userns"}),
    ("sandbox container", None, {"sandbox": "container"}),
    ("turns", None, {"solver": "agent?max_turns=3"}),
    ("tokens", None, {"solver": "agent?tokens=100"}),
    ("wall", None, {"solver": "agent?wall_s=5"}),
    ("output", None, {"solver": "agent?output_kib=1"}),
    ("protocol", None, {"solver": "agent?protocol=tags"}),
    ("last", None, {"solver": "agent?run_last=false"}),
]


def test_each_input_of_a_tool_flipped_alone_gives_keys_of_its_own(hall, house):
    make = registry.find("tasks", "own/add").target
    seen = dict.fromkeys(house.planned_keys(solver="agent"), "nothing")
    for name, toolset, options in FLIPS:
        if toolset:
            registry.task("own/add")(
                lambda request, t=toolset: msgspec.structs.replace(make(request), toolset=t(hall))
            )
        keys = house.planned_keys(**{"solver": "agent", **options})
        assert [(name, seen[key]) for key in keys if key in seen] == []
        seen |= dict.fromkeys(keys, name)
        registry.task("own/add")(make)
    house.capabilities |= {"tools"}  # the loop then speaks another protocol by itself
    assert not set(house.planned_keys(solver="agent")) & set(seen)
    house.capabilities -= {"tools"}
    assert {seen[k] for k in house.planned_keys(solver="agent")} == {"nothing"}


def test_an_item_s_data_are_in_the_key_only_where_tools_see_them(hall, house):
    agent, plain = house.planned_keys(solver="agent"), house.planned_keys(solver="generate")
    house.samples = [
        msgspec.structs.replace(s, metadata={"file_sha256": "ab"}) for s in house.samples
    ]
    assert not set(agent) & set(house.planned_keys(solver="agent"))
    assert house.planned_keys(solver="generate") == plain


def test_a_draw_s_key_holds_the_repeat_that_its_environment_is_made_for(hall, house):
    registry.strategy("two")(type("Two", (), {"n": 2, "__call__": lambda self, candidates: 0}))
    for solver, alone in (("agent", 12), ("generate", 0)):
        plain = house.planned_keys(solver=solver, epochs=2)
        drawn = house.planned_keys(solver=solver, epochs=1, strategy="two")
        # The first draw is the first repeat; the second is another draw of that same repeat.
        assert drawn[:12] == plain[:12]
        assert len(set(drawn) - set(plain)) == alone


def test_without_tools_the_level_changes_no_key(hall, house):
    plain = house.planned_keys(solver="generate")
    assert house.planned_keys(solver="generate", sandbox="limits") == plain


def test_the_level_is_kept_for_resume(hall, house):
    levels = []
    make = registry.find("tasks", "own/add").target

    def task(request):
        def environment(sample, request):
            levels.append(request.level)
            return Place(hall, sample.item_id)

        return msgspec.structs.replace(make(request), environment=environment)

    registry.task("own/add")(task)
    house.answer = lambda request: Output(text="", finish_reason="error", error_kind="network")
    run = house.run(sandbox="unshare", first=1)
    house.answer = house.solve
    assert house.resume(run.run_id).n_scored == 1
    assert set(levels) == {"unshare"}


def test_an_identity_without_tools_is_refused_where_they_are_a_must(hall, house):
    with pytest.raises(HarnessError, match="needs 'tools', which backend 'count' cannot do"):
        house.run(solver="agent?protocol=tools")
