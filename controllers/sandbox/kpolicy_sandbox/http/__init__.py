"""Requests and answers: paths, bodies, discovery, OpenAPI, Tables, watch streams. The only room that knows aiohttp's server."""
