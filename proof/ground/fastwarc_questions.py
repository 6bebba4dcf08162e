"""What FastWARC takes for the records of the benchmark `libraries`: run there, in an environment that has it.

    python fastwarc_questions.py FILE OFFSET…

Prints one JSON object: CPU seconds to read all records in order, and those at the offsets one by one.
"""

import json
import sys
import time
from collections.abc import Callable

from fastwarc.stream_io import FileStream
from fastwarc.warc import ArchiveIterator

ROUNDS = 5


def best_s(work: Callable[[], object]) -> float:
    spent = []
    for _ in range(ROUNDS):
        began = time.process_time()
        work()
        spent.append(time.process_time() - began)
    return min(spent)


def main() -> None:
    path, offsets = sys.argv[1], [int(word) for word in sys.argv[2:]]

    def in_order() -> int:
        return sum(len(record.reader.read()) for record in ArchiveIterator(path, parse_http=False))

    def one_by_one() -> None:
        for offset in offsets:
            stream = FileStream(path)
            stream.seek(offset)
            record = next(ArchiveIterator(stream, parse_http=True))
            assert record.http_headers.asdict()
            assert record.reader.read()

    print(json.dumps({"in_order_s": best_s(in_order), "one_by_one_s": best_s(one_by_one)}))


if __name__ == "__main__":
    main()
