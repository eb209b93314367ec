"""The tests' own tools that need no server."""

from __future__ import annotations

import pytest

from tests.support.needs import may_be_skipped
from tests.support.resp import split_messages
from tests.support.waiting import WaitTimeout, wait_until


class TestSplitMessages:
    @pytest.mark.parametrize(
        "message",
        [
            b"+OK\r\n",
            b"-ERR no\r\n",
            b":12\r\n",
            b"$5\r\na\r\nbc\r\n",
            b"$0\r\n\r\n",
            b"$-1\r\n",
            b"*-1\r\n",
            b"*0\r\n",
            b"*2\r\n$1\r\na\r\n*1\r\n:1\r\n",
            b"%1\r\n+key\r\n*2\r\n:1\r\n:2\r\n",
            b"|1\r\n+ttl\r\n:3600\r\n*1\r\n:1\r\n",
            b"~1\r\n#t\r\n",
            b">2\r\n+invalidate\r\n_\r\n",
            b"=7\r\ntxt:abc\r\n",
            b",1.5\r\n",
        ],
    )
    def test_a_message_is_taken_when_it_is_whole(self, message):
        buffer = bytearray()
        for byte in message[:-1]:
            buffer.append(byte)
            assert split_messages(buffer) == []
        buffer += message[-1:] + b"+next"
        assert split_messages(buffer) == [message]
        assert buffer == b"+next"

    def test_several_at_once(self):
        buffer = bytearray(b"+a\r\n*1\r\n$1\r\nb\r\n:3\r\n")
        assert split_messages(buffer) == [b"+a\r\n", b"*1\r\n$1\r\nb\r\n", b":3\r\n"]
        assert buffer == b""


class TestWaitUntil:
    def test_returns_what_came(self):
        answers = iter([0, "", "here"])
        assert wait_until(lambda: next(answers)) == "here"

    def test_says_what_did_not_come(self):
        with pytest.raises(WaitTimeout, match=r"not within 0.02 s: the moon, at 3"):
            wait_until(lambda: False, timeout=0.02, message=lambda: "the moon, at 3")

    def test_a_failed_assertion_means_not_yet(self):
        answers = iter([1, 2, 3])

        def check():
            assert next(answers) == 3
            return True

        assert wait_until(check)


def test_only_what_makes_no_sense_here_may_be_skipped():
    assert may_be_skipped("Skipped: not here: Windows has no signals")
    assert not may_be_skipped("Skipped: missing on this machine: chromium")
