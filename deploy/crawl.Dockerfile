# The image of one crawl, with the live page: docker build -f deploy/crawl.Dockerfile -t lycosa-crawl .
FROM rust:1-slim-bookworm AS kernel
RUN apt-get update \
    && apt-get install -y --no-install-recommends python3 python3-pip python3-venv \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /build
COPY native native
RUN python3 -m venv venv && venv/bin/pip wheel --no-cache-dir --no-deps --wheel-dir wheels ./native

FROM python:3.12-slim-bookworm
RUN useradd --create-home --uid 1000 lycosa && install -d -o lycosa -g lycosa /data
COPY --from=kernel /build/wheels /tmp/wheels
COPY pyproject.toml README.md LICENSE NOTICE /tmp/lycosa/
COPY src /tmp/lycosa/src
RUN pip install --no-cache-dir /tmp/wheels/*.whl "/tmp/lycosa[serve]" && rm -rf /tmp/lycosa /tmp/wheels
USER 1000
WORKDIR /data
VOLUME /data
# Docker sends SIGTERM, on which a crawl commits and ends; the next start continues it.
STOPSIGNAL SIGTERM
ENTRYPOINT ["lycosa"]
CMD ["--help"]
