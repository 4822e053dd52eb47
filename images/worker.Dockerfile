# The launcher and the trainer on CPU, and the examples' data. Its context is made by images/build.sh.
ARG BASE=debian:bookworm-slim
FROM ${BASE}
COPY worker/ /
# They start on this base.
RUN ["/usr/local/bin/ringmaster-launcher", "--help"]
RUN ["/usr/local/bin/ringmaster-train", "--help"]
WORKDIR /workspace
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/ringmaster-launcher"]
ARG VERSION
ARG REVISION
ARG CREATED
LABEL org.opencontainers.image.title="ringmaster-worker" \
      org.opencontainers.image.description="The launcher and the native trainer of a TrainingJob's worker, on CPU." \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}"
