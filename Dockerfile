# syntax=docker/dockerfile:1
# Two stages: one builds a virtual environment, the other holds it and nothing else.
#
#   docker build -t deid-gateway .
#   docker run --rm -v deid-home:/var/lib/deid deid-gateway init /var/lib/deid      # once: folders and a key
#   docker run --read-only --tmpfs /tmp -v deid-home:/var/lib/deid \
#       -p 11112:11112 -p 127.0.0.1:8080:8080 -e DEID_ALLOWED_PEERS=PACS@10.0.0.7 deid-gateway
#
# The image holds no key and makes none by itself: `serve` refuses a home that `init` has not made.
# To pin the base by digest: --build-arg PYTHON_IMAGE=python@sha256:...
# For nodes with NVIDIA GPUs, some gigabytes larger: --build-arg TORCH=cuda
ARG PYTHON_IMAGE=python:3.11.14-slim-bookworm

FROM ${PYTHON_IMAGE} AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN python -m venv /opt/deid
WORKDIR /src
COPY constraints.txt pyproject.toml README.md LICENSE ./
COPY gateway gateway
COPY models models
COPY policies policies
# PyPI's torch for Linux carries CUDA; what runs on CPUs alone is at PyTorch's own index, under the same version.
ARG TORCH=cpu
RUN case "$TORCH" in \
        cpu) /opt/deid/bin/pip install --constraint constraints.txt --no-deps \
            --index-url https://download.pytorch.org/whl/cpu torch ;; \
        cuda) ;; \
        *) echo "TORCH is cpu or cuda" >&2; exit 2 ;; \
    esac \
    && /opt/deid/bin/pip install --constraint constraints.txt '.[cluster,learn]' \
    && /opt/deid/bin/pip uninstall --yes opencv-python \
    && /opt/deid/bin/pip install --constraint constraints.txt --no-deps opencv-python-headless \
    && /opt/deid/bin/pip uninstall --yes pip setuptools

FROM ${PYTHON_IMAGE}
LABEL org.opencontainers.image.title="deid-gateway" \
      org.opencontainers.image.description="De-identification gateway between a hospital's PACS and a research archive" \
      org.opencontainers.image.licenses="Apache-2.0"

# A numeric user, so that Kubernetes can check runAsNonRoot. Its home folder is the volume: the one place it writes to.
RUN groupadd --gid 10001 deid \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /var/lib/deid --shell /usr/sbin/nologin deid \
    && install --directory --mode 0700 --owner 10001 --group 10001 /var/lib/deid
COPY --from=build /opt/deid /opt/deid
# For reading and as a start for a site's own; mount yours over it.
COPY policies /etc/deid/policies

# Bytecode was compiled above; the root file system is read-only at run time. Inside a container the ports bind to every
# address, and `-p` or a Service decides who reaches them; who may send stays deny-by-default (DEID_ALLOWED_PEERS).
ENV PATH=/opt/deid/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    HOME=/tmp \
    DEID_HOME=/var/lib/deid \
    DEID_POLICIES=/etc/deid/policies \
    DEID_DICOM_HOST=0.0.0.0 \
    DEID_DICOM_PORT=11112 \
    DEID_HTTP_HOST=0.0.0.0 \
    DEID_HTTP_PORT=8080
VOLUME ["/var/lib/deid"]
EXPOSE 11112 8080
USER 10001:10001

# http.client rather than urllib: a proxy set in the environment must not answer for us.
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-I", "-c", "import http.client, os, sys; c = http.client.HTTPConnection('127.0.0.1', int(os.environ['DEID_HTTP_PORT']), timeout=4); c.request('GET', '/healthz'); sys.exit(c.getresponse().status != 200)"]
ENTRYPOINT ["deid-gateway"]
CMD ["serve"]
