# Workers for AMD, and rbee. From the repository's root:
#   docker build -f packaging/docker/rocm.Dockerfile --build-arg ARCHS=gfx90a -t rbee:0.1.0-rocm .
# Debian 12's HIP runtime is 5.2: nothing later than RX 6000 and MI200. For later cards put AMD's in its
# place (docs/guide/amd.md has the packages' names).
FROM debian:12 AS build
# Architectures to make machine code for; empty = all (see docs/guide/amd.md).
ARG ARCHS=""
WORKDIR /rbee
COPY . .
RUN bash tools/install_deps.sh rocm \
 && apt-get install -y --no-install-recommends dpkg-dev
RUN cmake --preset rocm -DRBEE_TESTS=OFF ${ARCHS:+"-DRBEE_ROCM_ARCHS=$ARCHS"} \
 && cmake --build --preset rocm
RUN SOURCE_DATE_EPOCH=0 bash packaging/make_deb.sh build/rocm /packages

FROM debian:12-slim
RUN --mount=type=bind,from=build,source=/packages,target=/packages \
    apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates /packages/*.deb libamdhip64-5 \
 && rm -rf /var/lib/apt/lists/*
USER 65532:65532
EXPOSE 8080
CMD ["llm-worker-rbee-rocm", "--help"]
