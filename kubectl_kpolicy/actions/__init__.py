"""Everything that can be done, described once: keys, footer, help, menus, palette and command log are derived from here.

`registry` says what an action is, `catalog` lists all of them, `doing` carries out those that change the cluster.
"""
