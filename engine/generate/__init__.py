"""Generate rules as plans: labels and objects; carrying a plan out belongs to the loops."""
