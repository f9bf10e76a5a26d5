# The image of docker-compose.yml: slotqueue with arq and Celery, and the application in examples/compose.
FROM python:3.13-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY slotqueue slotqueue
RUN python -m venv /venv && /venv/bin/pip install --no-cache-dir ".[all]"

FROM python:3.13-slim
COPY --from=build /venv /venv
ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1 SLOTQUEUE_APP=app:slots
WORKDIR /app
COPY examples/compose/app.py ./
USER 10001:10001
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["slotqueue", "health", "--http", "127.0.0.1:9100"]
CMD ["slotqueue", "run", "--http", "0.0.0.0:9100"]
