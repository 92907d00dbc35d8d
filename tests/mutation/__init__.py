"""Mutation runs: would the tests notice if the engine decided differently?"""
