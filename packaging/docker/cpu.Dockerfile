# Workers for CPUs, and rbee. From the repository's root:
#   docker build -f packaging/docker/cpu.Dockerfile -t rbee:0.1.0-cpu .
FROM debian:12 AS build
WORKDIR /rbee
COPY . .
RUN bash tools/install_deps.sh build \
 && apt-get install -y --no-install-recommends dpkg-dev
RUN cmake --preset cpu -DRBEE_TESTS=OFF && cmake --build --preset cpu
RUN SOURCE_DATE_EPOCH=0 bash packaging/make_deb.sh build/cpu /packages

FROM debian:12-slim
RUN --mount=type=bind,from=build,source=/packages,target=/packages \
    apt-get update && apt-get install -y --no-install-recommends ca-certificates libzmq5 /packages/*.deb \
 && rm -rf /var/lib/apt/lists/*
USER 65532:65532
EXPOSE 8080
CMD ["llm-worker-rbee-cpu", "--help"]
