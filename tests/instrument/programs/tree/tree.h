/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TREE_H
#define TREE_H

/* A cell of an adaptive mesh: a leaf has a value, another one has four children. */
struct cell {
    struct cell *parent;
    struct cell *child[4];
    double x, y, size;
    double value, change;
    int level;
    struct cell *next_leaf; /* all leaves of a process, in order */
};

struct forest {
    struct cell **root; /* one tree for each column of the strip */
    int nroots;
    struct cell *first_leaf, *last_leaf;
    int nleaves;
};

extern int max_level;

struct cell *new_cell(struct cell *parent, double x, double y, double size);
void split(struct cell *one);
void join(struct cell *one);
void free_tree(struct cell *one);
void link_leaves(struct forest *f);
struct cell *find_leaf(struct forest *f, double x, double y);
int depth_of(const struct cell *one);
#endif
