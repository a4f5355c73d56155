"""What goes over HTTP: the witness as a service and as a client. The only package that knows httpx, starlette and uvicorn.

- `witnessing`       what every witness shares: answering over its state, and asking in chunks
- `witness_service`  `POST /v1/witness` and `GET /v1/witness/{ledger}/head`
- `witness_client`   `ports.Witness` over HTTP
- `witness_file`     `ports.Witness` in process, beside the engine
- `problems`         diagnostics as problem details (RFC 9457)
"""
