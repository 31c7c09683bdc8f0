# Workers for NVIDIA, and rbee. From the repository's root:
#   docker build -f packaging/docker/cuda.Dockerfile --build-arg ARCHS=90a -t rbee:0.1.0-cuda .
# The driver comes from the host: NVIDIA's container runtime puts it in.
FROM nvidia/cuda:13.0.1-devel-ubuntu24.04 AS toolkit

FROM debian:12 AS build
# Architectures to make machine code for; empty = all (see docs/guide/gpus.md).
ARG ARCHS=""
WORKDIR /rbee
COPY --from=toolkit /usr/local/cuda/ /usr/local/cuda/
COPY . .
RUN bash tools/install_deps.sh build \
 && apt-get install -y --no-install-recommends dpkg-dev
RUN cmake --preset cuda -DRBEE_TESTS=OFF ${ARCHS:+"-DRBEE_CUDA_ARCHS=$ARCHS"} \
 && cmake --build --preset cuda
RUN SOURCE_DATE_EPOCH=0 bash packaging/make_deb.sh build/cuda /packages \
 && mkdir /libraries && cp -L /usr/local/cuda/lib64/libcublasLt.so.13 /libraries/

FROM debian:12-slim
RUN --mount=type=bind,from=build,source=/packages,target=/packages \
    apt-get update && apt-get install -y --no-install-recommends ca-certificates libzmq5 /packages/*.deb \
 && rm -rf /var/lib/apt/lists/*
COPY --from=build /libraries/ /usr/lib/x86_64-linux-gnu/
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
USER 65532:65532
EXPOSE 8080
CMD ["llm-worker-rbee-cuda", "--help"]
