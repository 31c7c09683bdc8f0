# Workers for AMD, and rbee. From the repository's root:
#   docker build -f packaging/docker/rocm.Dockerfile --build-arg ARCHS=gfx1100 -t rbee:0.1.0-rocm .
FROM debian:12 AS build
# Architectures to make machine code for; empty = all (see docs/guide/amd.md).
ARG ARCHS=""
WORKDIR /rbee
COPY . .
RUN bash tools/install_deps.sh rocm \
 && apt-get install -y --no-install-recommends dpkg-dev
# Built on the system that the project is built and tested on, for any glibc from 2.28 on.
RUN SOURCE_DATE_EPOCH=0 bash packaging/make_packages.sh --rocm ${ARCHS:+"-DRBEE_ROCM_ARCHS=$ARCHS"} /packages

# For its HIP runtime, 7.1: it knows RX 9000 and MI350. Debian 12's is 5.2, of before RX 7000.
FROM ubuntu:26.04
RUN --mount=type=bind,from=build,source=/packages,target=/packages \
    apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates libzmq5 /packages/*.deb libamdhip64-7 \
 && rm -rf /var/lib/apt/lists/*
USER 65532:65532
EXPOSE 8080
CMD ["llm-worker-rbee-rocm", "--help"]
