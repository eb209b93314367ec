"""The search: breadth first through all states, so that the first harm found has a shortest trace.

When no state is broken, the graph is walked backwards from the states in which everything has come
to its end, over the steps that are no faults. A state that this does not reach is one from which a
job can never end, though nothing further fails.
"""

from __future__ import annotations

import dataclasses
import gc
import time
from array import array
from collections.abc import Container, Iterator

from tests.model.invariants import STRANDED, broken, ended
from tests.model.rules import Rules, Size
from tests.model.steps import beginning, steps


@dataclasses.dataclass(frozen=True, slots=True)
class Result:
    """What a search came to."""

    states: int
    transitions: int
    seconds: float
    #: The invariant that was broken, and how; '' and () where none was.
    harm: str = ""
    trace: tuple[str, ...] = ()

    def __str__(self) -> str:
        size = f"{self.states} states, {self.transitions} steps, {self.seconds:.1f} s"
        if not self.harm:
            return f"{size}: nothing is broken"
        lines = [f"  {number:2}. {what}" for number, what in enumerate(self.trace, 1)]
        return "\n".join((f"{size}: {self.harm}", *lines))


class Search:
    """One walk through the states of one size under one set of rules."""

    def __init__(self, rules: Rules, size: Size, blind_to: Container[str] = ()) -> None:
        """`blind_to`: broken rules about steps to look away from, to see what comes of them."""
        self._rules = rules
        self._blind_to = blind_to
        self._size = size
        first = beginning(size)
        self._states = [first]
        self._places = {first: 0}
        #: For each state the one it was found from, and by which step.
        self._found_from = array("l", [-1])
        self._found_by = [""]
        #: The steps that are no faults, as pairs of places.
        self._from = array("l")
        self._to = array("l")
        self._transitions = 0

    def run(self) -> Result:
        began = time.monotonic()
        collects = gc.isenabled()
        gc.disable()  # millions of tuples without a cycle: looking through them takes half the time
        try:
            harm, place = self._forwards()
            if not harm:
                harm, place = self._backwards()
        finally:
            if collects:
                gc.enable()
        return Result(
            len(self._states),
            self._transitions,
            time.monotonic() - began,
            harm,
            tuple(self._trace(place)) if harm else (),
        )

    def _forwards(self) -> tuple[str, int]:
        states, places = self._states, self._places
        place = 0
        while place < len(states):
            for what, after, fault in steps(states[place], self._rules, self._size):
                self._transitions += 1
                if after.wrong in self._blind_to:
                    after = after._replace(wrong="")
                there = places.get(after)
                if there is None:
                    there = places[after] = len(states)
                    states.append(after)
                    self._found_from.append(place)
                    self._found_by.append(what)
                    harm = broken(after)
                    if harm:
                        return harm, there
                if not fault:
                    self._from.append(place)
                    self._to.append(there)
            place += 1
        return "", -1

    def _backwards(self) -> tuple[str, int]:
        """The first state from which no end is to be reached, if there is one."""
        count = len(self._states)
        # Where in `sources` those of each state begin: a list of lists would take far more memory.
        begins = array("l", bytes(array("l").itemsize * (count + 1)))
        for to in self._to:
            begins[to + 1] += 1
        for place in range(count):
            begins[place + 1] += begins[place]
        free = array("l", begins)
        sources = array("l", bytes(array("l").itemsize * len(self._to)))
        for source, to in zip(self._from, self._to, strict=True):
            sources[free[to]] = source
            free[to] += 1
        good = bytearray(count)
        todo = [place for place, state in enumerate(self._states) if ended(state)]
        for place in todo:
            good[place] = 1
        while todo:
            place = todo.pop()
            for source in sources[begins[place] : begins[place + 1]]:
                if not good[source]:
                    good[source] = 1
                    todo.append(source)
        stranded = good.find(0)
        return ("", -1) if stranded < 0 else (STRANDED, stranded)

    def _trace(self, place: int) -> Iterator[str]:
        steps_back = []
        while place > 0:
            steps_back.append(self._found_by[place])
            place = self._found_from[place]
        return reversed(steps_back)


def explore(rules: Rules, size: Size, blind_to: Container[str] = ()) -> Result:
    return Search(rules, size, blind_to).run()
