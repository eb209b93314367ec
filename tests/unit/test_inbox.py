"""The inbox of the processors: everything is taken once, and nobody sleeps while there is something."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter

import pytest

from django_cogworker.worker.inbox import Inbox

PROCESSORS = 10
END = None


@pytest.fixture(params=[5e-3, 1e-5], ids=["slow-switch", "quick-switch"])
def switching(request):
    """Also with threads that are interrupted between any two steps."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(request.param)
    yield
    sys.setswitchinterval(before)


def staff(inbox, work):
    """Processors that do `work(place, thing)` until the end."""

    def loop(place):
        while (thing := inbox.get()) is not END:
            work(place, thing)

    threads = [threading.Thread(target=loop, args=(place,)) for place in range(PROCESSORS)]
    for each in threads:
        each.start()
    return threads


def dismiss(inbox, threads):
    inbox.put([END] * len(threads))
    for each in threads:
        each.join(10)
        assert not each.is_alive()


def test_everything_is_taken_once(switching):
    inbox, taken = Inbox(), []
    threads = staff(inbox, lambda place, thing: taken.append(thing))

    def fill(start):
        for number in range(start, start + 2_000):
            inbox.put([number])

    putters = [threading.Thread(target=fill, args=(start,)) for start in range(0, 8_000, 2_000)]
    for each in putters:
        each.start()
    for each in putters:
        each.join()
    dismiss(inbox, threads)
    assert Counter(taken) == Counter(range(8_000))


def test_nobody_sleeps_while_there_is_something(switching):
    """Single things with pauses in which all have gone to sleep: each is taken though nothing comes after it."""
    inbox, done = Inbox(), threading.Semaphore(0)
    threads = staff(inbox, lambda place, thing: done.release())
    for number in range(3_000):
        inbox.put([number])
        assert done.acquire(timeout=10), f"nobody came for {number}"
    dismiss(inbox, threads)


def test_things_that_wait_are_done_side_by_side(switching):
    """As many as there are processors meet inside their work."""
    inbox, meeting = Inbox(), threading.Barrier(PROCESSORS)
    threads = staff(inbox, lambda place, thing: meeting.wait(10))
    for _ in range(20):
        inbox.put(range(PROCESSORS))
    dismiss(inbox, threads)
    assert not meeting.broken


def test_all_come_when_the_first_keeps_the_interpreter():
    """Work that computes and then waits: the others do not wait until the first is done."""
    inbox, meeting = Inbox(), threading.Barrier(PROCESSORS)

    def work(place, thing):
        until = time.perf_counter() + 0.01
        while time.perf_counter() < until:
            pass
        meeting.wait(10)

    threads = staff(inbox, work)
    inbox.put(range(PROCESSORS))
    dismiss(inbox, threads)
    assert not meeting.broken


def test_who_waits_looks_after_things_now_and_then(switching):
    """Before each wait, and after the seconds that it asks for; a call in that moment is not lost."""
    inbox, done = Inbox(), threading.Semaphore(0)
    looks: Counter[str] = Counter()

    def idle():
        looks["idle"] += 1
        return 0.0005

    def loop():
        while inbox.get(idle) is not END:
            done.release()

    threads = [threading.Thread(target=loop) for _ in range(3)]
    for each in threads:
        each.start()
    for number in range(2_000):
        inbox.put([number])
        assert done.acquire(timeout=10), f"nobody came for {number}"
    while looks["idle"] < 2_000:
        time.sleep(0)
    dismiss(inbox, threads)
