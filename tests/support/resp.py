"""Cut a stream of the Redis protocol (RESP2, RESP3) into whole messages, without decoding."""

from __future__ import annotations

# By the first byte: how many messages follow for one unit of the count that the line holds.
_AGGREGATES = {b"*": 1, b"~": 1, b">": 1, b"%": 2, b"|": 2}
_BULKS = {b"$", b"!", b"="}


def message_end(data: bytes | bytearray, start: int = 0) -> int | None:
    """Where the message that begins at `start` ends; None while its rest has not come yet."""
    open_messages = 1
    position = start
    while open_messages:
        line_end = data.find(b"\r\n", position)
        if line_end < 0:
            return None
        kind = bytes(data[position : position + 1])
        count = data[position + 1 : line_end]
        position = line_end + 2
        open_messages -= 1
        if kind in _BULKS and int(count) >= 0:
            position += int(count) + 2
            if position > len(data):
                return None
        elif kind in _AGGREGATES and int(count) > 0:
            open_messages += int(count) * _AGGREGATES[kind]
            if kind == b"|":  # attributes come before the message that they describe
                open_messages += 1
        elif kind == b"|":
            open_messages += 1
    return position


def split_messages(buffer: bytearray) -> list[bytes]:
    """Take all whole messages from the front of `buffer`; an unfinished one stays in it."""
    messages: list[bytes] = []
    position = 0
    while (end := message_end(buffer, position)) is not None and end > position:
        messages.append(bytes(buffer[position:end]))
        position = end
    del buffer[:position]
    return messages
