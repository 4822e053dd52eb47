# The worker with what collectives on NVIDIA GPUs need: NCCL, and the program that measures it. Launcher and trainer are the worker's own, and the
# trainer computes on processors. The driver comes from the node, by its container runtime. Its context is made by images/build.sh.
ARG WORKER=ringmaster-worker
FROM ${WORKER}
COPY worker-cuda/ /
# It starts on this base.
RUN ["/usr/local/bin/ringmaster-bench-collectives", "--help"]
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
ARG VERSION
ARG REVISION
ARG CREATED
LABEL org.opencontainers.image.title="ringmaster-worker-cuda" \
      org.opencontainers.image.description="The worker of a TrainingJob, with NCCL for collectives on NVIDIA GPUs." \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}"
