"""When objects are due for deletion: by their own TTL label, and by cleanup policies with their schedules.

`ttl`, `schedule` and `holds` stand low, because exceptions and grants end by them; `plan` stands on the evaluation of policies.
"""
