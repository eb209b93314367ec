"""Calls whose reply was lost, and what Redis may have done in them all the same.

A lost reply changes nothing: the same call is made again, with the same tickets. Redis knows it again by
the first of them and grants what it granted then, nothing new; a success that is told twice counts once. So
what has to be remembered is little: from which ticket on we do not know, for how many jobs those calls asked,
how many successes the last one told, and which settlements they had. All of it is certain again when the
jobs of as many tickets are held here, or when others took this worker for dead and have them.
"""

from __future__ import annotations

from collections.abc import Sequence

from django_cogworker.store.values import ExchangeReply, ExchangeRequest


class Unanswered:
    """The ones of a fetcher, whose thread alone changes it."""

    def __init__(self) -> None:
        #: The next call asks for tickets from this one on.
        self.first_ticket = 1
        #: How many jobs the calls asked for: Redis may have granted them, and we do not know it.
        self.asked = 0
        #: How many successes the last call told: they are repeated as they were.
        self.repeating = 0
        #: Settlements (by id) that Redis may have carried out.
        self._perhaps_settled: set[int] = set()

    def lost(self, request: ExchangeRequest) -> None:
        """No reply came to this call."""
        self.asked = max(self.asked, request.wanted)
        self.repeating = len(request.acknowledged)
        self._perhaps_settled.update(map(id, request.settlements))

    def verdicts(self, request: ExchangeRequest, reply: ExchangeReply) -> Sequence[int | str]:
        """A reply came: what became of the settlements in the call."""
        self.repeating = 0
        if not self._perhaps_settled:
            return reply.verdicts
        earlier, self._perhaps_settled = self._perhaps_settled, set()
        return [
            # 0 says that the job is not ours any more: an earlier call did it, and its reply was lost.
            1 if verdict == 0 and id(settlement) in earlier else verdict
            for settlement, verdict in zip(request.settlements, reply.verdicts, strict=True)
        ]

    def known(self, request: ExchangeRequest, reply: ExchangeReply) -> None:
        """The jobs that came with the reply are held here, so that those tickets are known."""
        if request.wanted > 0:
            self.first_ticket = max(self.first_ticket, reply.next_ticket)
            self.asked = max(0, self.asked - request.wanted)

    def start_over(self) -> None:
        """What was granted is with others now."""
        self.asked = self.repeating = 0
        self._perhaps_settled.clear()
