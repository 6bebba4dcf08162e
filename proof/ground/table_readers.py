"""How often each URL stands in an export, as other programs read it: one JSON object on standard output.

python table_readers.py CACHE NAME=PATH…   with NAME one of jsonl, csv, parquet   →   {"pandas jsonl": DIGEST, …}

Runs in an environment that has these programs; nothing is asked of the network.
"""

import hashlib
import json
import os
import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

os.environ |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}


def digest(urls: Iterable[str]) -> str:
    """The same for the same URLs in any order."""
    return hashlib.sha256("\n".join(sorted(urls)).encode()).hexdigest()


# How pandas, Polars and DuckDB read each kind of file.
READ = {
    "jsonl": ("read_json", {"lines": True}, "read_ndjson", "read_json"),
    "csv": ("read_csv", {}, "read_csv", "read_csv"),
    "parquet": ("read_parquet", {}, "read_parquet", "read_parquet"),
}


def main(cache: str, files: dict[str, str]) -> None:
    pandas, polars, duckdb, datasets = map(import_module, ("pandas", "polars", "duckdb", "datasets"))
    found: dict[str, str] = {}
    for name, path in files.items():
        parts = sorted(map(str, Path(path).rglob("*.parquet"))) if name == "parquet" else [path]
        in_pandas, options, in_polars, in_duckdb = READ[name]
        rows = duckdb.execute(f"select url from {in_duckdb}($parts)", {"parts": parts}).fetchall()
        builder = "json" if name == "jsonl" else name
        loaded = datasets.load_dataset(builder, data_files=parts, split="train", cache_dir=cache)
        found |= {
            f"pandas {name}": digest(
                url for part in parts for url in getattr(pandas, in_pandas)(part, **options)["url"]
            ),
            f"polars {name}": digest(url for part in parts for url in getattr(polars, in_polars)(part)["url"]),
            f"duckdb {name}": digest(url for (url,) in rows),
            f"datasets {name}": digest(loaded["url"]),
        }
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], dict(argument.split("=", 1) for argument in sys.argv[2:]))
