"""How each fault is done, and undone. Real signals to real processes, real bytes lost on real sockets."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tests.chaos import usurper
from tests.chaos.fleet import Fleet, Slot
from tests.chaos.records import Disturbance
from tests.chaos.schedule import CHILDREN, PROXIED, SUPERVISED, WORKER_LINE, Fault
from tests.support.proxy import RedisProxy, Rule

#: Ends the fault. May raise redis-py's errors; then it is called again.
Heal = Callable[[], None]

#: Seconds after a fault in which a worker may still feel it: pauses grow to 2 s; a call on a half-open
#: connection is given up after 5 s, one that blocks after 7 s; what a wrong key held up is tried again after 5 s.
PAUSES, TIMEOUTS, LATER = 3.0, 9.0, 8.0
RESTS = {
    "worker frozen": PAUSES,
    "redis killed": PAUSES,
    "redis frozen": PAUSES,
    "redis full": LATER,
    "scripts flushed": PAUSES,
    "connections cut": PAUSES,
    "no connections": PAUSES,
    "half-open connections": TIMEOUTS,
    "replies late": PAUSES,
    "requests lost": TIMEOUTS,
    "replies lost": TIMEOUTS,
    "wrong type": LATER,
}
#: Each so-many-th command of a line is lost.
ONE_IN = 7
#: Bytes that a full server has left.
HEADROOM = 50_000


class Missed(Exception):
    """There was nothing to strike."""


class Injector:
    """Begins faults; each begin returns how to end it."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self.disturbances: list[Disturbance] = []
        self._kinds: dict[str, Callable[[Fault], Heal]] = {
            "worker killed": self._kill_worker,
            "supervisor killed": self._kill_slot,
            "worker stopped": self._stop_worker,
            "worker frozen": self._freeze_worker,
            "redis killed": self._kill_redis,
            "redis frozen": self._freeze_redis,
            "redis full": self._fill_redis,
            "scripts flushed": self._flush_scripts,
            "connections cut": self._cut,
            "no connections": self._line_down,
            "half-open connections": self._half_open,
            "replies late": self._delay,
            "requests lost": self._lose_requests,
            "replies lost": self._lose_replies,
            "wrong type": self._wrong_type,
        }

    def begin(self, fault: Fault) -> Heal:
        """Do it. Raises `Missed`, or redis-py's errors where Redis could not be told."""
        begun = time.time()
        heal = self._kinds[fault.kind](fault)
        if fault.kind not in RESTS:
            return heal
        slot, pid = self._whom(fault)
        disturbance = Disturbance(fault.kind, slot, pid, begun, float("inf"), RESTS[fault.kind])
        if slot is not None:
            self.disturbances.append(disturbance)

        def healed() -> None:
            heal()
            disturbance.end = time.time()

        return healed

    def _whom(self, fault: Fault) -> tuple[Any, int]:
        """Slot and pid of the workers that it disturbs: '' for all, `None` for none."""
        if fault.kind == "worker frozen":
            return "", self._frozen
        if fault.target in self._fleet.lines:
            return (PROXIED if fault.target == WORKER_LINE else None), 0
        return "", 0

    # -- workers

    def _slot_of(self, fault: Fault) -> Slot:
        slot = self._fleet.workers[fault.target]
        if not slot.alive:
            raise Missed
        return slot

    def _pid_of(self, fault: Fault) -> int:
        if fault.target not in CHILDREN:
            return self._slot_of(fault).pid
        children = self._fleet.children() if self._fleet.workers[SUPERVISED].alive else []
        if not children:
            raise Missed
        return children[CHILDREN.index(fault.target) % len(children)]

    def _kill_worker(self, fault: Fault) -> Heal:
        if fault.target in self._fleet.workers:
            return self._kill_slot(fault)
        with suppress(ProcessLookupError):
            os.kill(self._pid_of(fault), signal.SIGKILL)
        return _nothing

    def _kill_slot(self, fault: Fault) -> Heal:
        slot = self._slot_of(fault)
        slot.rests_until = time.monotonic() + fault.seconds
        self._fleet.kill(slot)
        return _nothing

    def _stop_worker(self, fault: Fault) -> Heal:
        self._fleet.ask_to_stop(self._slot_of(fault))
        return _nothing

    def _freeze_worker(self, fault: Fault) -> Heal:
        pid = self._frozen = self._pid_of(fault)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)

        def thaw() -> None:
            if pid in self._fleet.watch.living():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

        return thaw

    # -- the server

    def _kill_redis(self, fault: Fault) -> Heal:
        self._fleet.server.kill()

        def start() -> None:
            self._fleet.server.start(30)

        return start

    def _freeze_redis(self, fault: Fault) -> Heal:
        self._fleet.server.pause()
        return self._fleet.server.resume

    def _fill_redis(self, fault: Fault) -> Heal:
        client: Any = self._fleet.client
        used = int(client.info("memory")["used_memory"])
        client.config_set("maxmemory", used + HEADROOM)

        def empty() -> None:
            client.config_set("maxmemory", 0)

        return empty

    def _flush_scripts(self, fault: Fault) -> Heal:
        self._fleet.client.script_flush()
        return _nothing

    def _wrong_type(self, fault: Fault) -> Heal:
        usurper.usurp(self._fleet.client, fault.target)
        return lambda: usurper.restore(self._fleet.client, fault.target)

    # -- the lines

    def _line(self, fault: Fault) -> RedisProxy:
        return self._fleet.lines[fault.target]

    def _cut(self, fault: Fault) -> Heal:
        self._line(fault).cut()
        return _nothing

    def _line_down(self, fault: Fault) -> Heal:
        self._line(fault).down()
        return self._line(fault).up

    def _half_open(self, fault: Fault) -> Heal:
        self._line(fault).freeze()
        return self._line(fault).thaw

    def _delay(self, fault: Fault) -> Heal:
        return self._until_removed(fault, self._line(fault).delay_reply(fault.amount))

    def _lose_requests(self, fault: Fault) -> Heal:
        then: Any = "hang" if fault.amount < 0.3 else "cut"
        rule = self._line(fault).lose_request(_one_in(ONE_IN), times=None, then=then)
        return self._until_removed(fault, rule)

    def _lose_replies(self, fault: Fault) -> Heal:
        then: Any = "hang" if fault.amount < 0.3 else "cut"
        rule = self._line(fault).lose_reply(_one_in(ONE_IN), times=None, then=then)
        return self._until_removed(fault, rule)

    def _until_removed(self, fault: Fault, rule: Rule) -> Heal:
        return lambda: self._line(fault).remove(rule)


def _nothing() -> None:
    """What came and went at once has no end."""


def _one_in(number: int) -> Callable[[bytes], bool]:
    seen = 0

    def matches(command: bytes) -> bool:
        nonlocal seen
        seen += b"EVALSHA" in command
        return b"EVALSHA" in command and seen % number == 0

    return matches
