/* SPDX-License-Identifier: BSD-3-Clause */
#include "small_source.h"

namespace zc::instrument {

namespace {

/* A program whose main loop is `for (step = 0; CONDITION; step++)`, with @before in front. */
std::string looping(const std::string &condition, const std::string &before,
                    const std::string &body = "", const std::string &outside = "")
{
    return outside +
           "\nint main(int argc, char **argv) { int step, rank, n = 10; double sum = 0, all = 1;\n"
           "MPI_Init(&argc, &argv); MPI_Comm_rank(MPI_COMM_WORLD, &rank);\n" +
           before + "\nfor (step = 0; " + condition + "; step++) {\n" + body +
           "\nMPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD); sum += rank; }\n"
           "printf(\"%f\", sum); MPI_Finalize(); return 0; }\n";
}

const std::string kDiffer = "ranks may pass it in different numbers";

} // namespace

TEST(UniformityTest, ArgumentsAreTheSame)
{
    expect_done(looping("step < n", "if (argc > 1) n = atoi(argv[1]);"));
}

TEST(UniformityTest, TheRankIsNot)
{
    expect_refused(looping("step < n", "n = 10 + rank;"), "small.c:5: " + kDiffer);
    expect_refused(looping("step < n", "if (rank == 0) n = 12;"), kDiffer);
    expect_refused(looping("step < n", "", "if (rank == 1 && step == 3) break;"), kDiffer);
}

TEST(UniformityTest, WhatIsBroadcastIsTheSame)
{
    expect_done(looping("step < n",
                        "if (rank == 0) n = 12; MPI_Bcast(&n, 1, MPI_INT, 0, MPI_COMM_WORLD);"));
    expect_refused(
        looping("step < n", "MPI_Bcast(&n, 1, MPI_INT, 0, MPI_COMM_WORLD); if (rank == 0) n = 12;"),
        kDiffer);
}

TEST(UniformityTest, ARankThatReturnsFromMainIsAtItsEnd)
{
    const std::string share = "MPI_Bcast(&n, 1, MPI_INT, 0, MPI_COMM_WORLD);";
    expect_done(
        looping("step < n", "if (rank == 0) { FILE *f = fopen(\"in\", \"r\");"
                            "if (!f) { MPI_Abort(MPI_COMM_WORLD, 1); return 1; } fclose(f); }" +
                                share));
}

TEST(UniformityTest, OnlyBroadcastToAll)
{
    expect_refused(looping("step < n",
                           "MPI_Comm row; MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &row);"
                           "if (rank == 0) n = 12; MPI_Bcast(&n, 1, MPI_INT, 0, row);"),
                   kDiffer);
}

TEST(UniformityTest, CommunicatorsAreFollowed)
{
    const std::string outside =
        "struct grid { MPI_Comm all, row; };\n"
        "static void share(int *n, MPI_Comm comm) { MPI_Bcast(n, 1, MPI_INT, 0, comm); }\n"
        "static void divide(MPI_Comm *to, int by) { MPI_Comm_split(MPI_COMM_WORLD, by, 0, to); }\n";
    const std::string own = "struct grid g; g.all = MPI_COMM_WORLD; MPI_Comm part;"
                            "divide(&g.row, rank); if (rank == 0) n = 12;";
    expect_done(looping("step < n", own + "share(&n, g.all);", "", outside));
    expect_done(looping("step < n", own + "share(&n, MPI_COMM_WORLD);", "", outside));
    expect_refused(looping("step < n", own + "share(&n, g.row);", "", outside), kDiffer);
    expect_refused(looping("step < n", own + "part = g.row; share(&n, part);", "", outside),
                   kDiffer);
    expect_refused(
        looping("step < n", own + "MPI_Comm_dup(g.row, &part); share(&n, part);", "", outside),
        kDiffer);
    expect_refused(looping("step < n", own + "share(&n, g.all);", "share(&rank, g.row);", outside),
                   kDiffer);
}

TEST(UniformityTest, ACommunicatorIsOfAllRanksOnlyIfThatIsSeen)
{
    const std::string outside =
        "struct grid { MPI_Comm all, more[2]; }; struct by { MPI_Comm *c; };\n"
        "static MPI_Comm self = (MPI_Comm)0x44000001, whole = MPI_COMM_WORLD, never;\n"
        "extern MPI_Comm elsewhere; extern MPI_Comm *given;\n"
        "static void make(MPI_Comm *c) { MPI_Comm_dup(MPI_COMM_WORLD, c); }\n"
        "static void make_two(MPI_Comm *c) { make(c); }\n"
        "static void wipe(void *p) { *(int *)p = 3; }\n"
        "size_t fread(void *, size_t, size_t, FILE *);\n";
    const auto shared = [&](const std::string &comm, const std::string &before = "") {
        return looping("step < n",
                       "MPI_Comm sub, q; MPI_Comm *p; struct by z; struct grid g, h;"
                       "MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &sub);" +
                           before + "if (rank == 0) n = 12; MPI_Bcast(&n, 1, MPI_INT, 0, " + comm +
                           ");",
                       "", outside);
    };
    const std::string all = "g.all = MPI_COMM_WORLD; g.more[0] = g.more[1] = g.all; h = g;";
    expect_done(shared("whole"));
    expect_done(shared("q", "make_two(&q);"));
    expect_done(shared("h.all", all));
    expect_done(shared("h.more[1]", all));
    expect_done(shared("h.all", all + "memcpy(&h, &g, sizeof h);"));
    expect_done(shared("f.more[0]", "struct grid f = {whole, {MPI_COMM_WORLD, whole}};"));
    for (const auto &[comm, before] : std::initializer_list<std::pair<const char *, const char *>>{
             {"sub", ""},
             {"self", ""},
             {"never", ""},
             {"elsewhere", ""},
             {"*given", ""},
             {"q", "q = MPI_COMM_WORLD; p = &q; MPI_Comm_split(MPI_COMM_WORLD, rank, 0, p);"},
             {"q", "q = MPI_COMM_WORLD; z.c = &q; MPI_Comm_split(MPI_COMM_WORLD, rank, 0, z.c);"},
             {"q", "q = MPI_COMM_WORLD; memcpy(&q, &sub, sizeof q);"},
             {"q", "make(&q); wipe(&q);"},
             {"cs[0]", "MPI_Comm cs[1] = {sub};"},
             {"f.more[0]", "struct grid f = {whole, {sub, MPI_COMM_WORLD}};"},
             {"g.all", "g.all = MPI_COMM_WORLD; wipe(&g);"},
             {"g.all", "g.all = MPI_COMM_WORLD; memcpy(&g, &sub, sizeof sub);"},
             {"g.all", "g.all = MPI_COMM_WORLD; fread(&g, sizeof g, 1, 0);"}})
        expect_refused(shared(comm, before), kDiffer);
}

TEST(UniformityTest, AStructThatIsCopiedByItsSizeIsOne)
{
    const std::string outside =
        "void *memset(void *, int, size_t); struct run { int n; double end; };\n"
        "struct all { struct run run; int x; };\n"
        "static const struct run usual = {3, 7};\n"
        "static void get(struct run *r, int rank) { memset(r, 0, sizeof *r);\n"
        "if (rank == 0) { *r = usual; r->n = 7; }\n"
        "MPI_Bcast(r, sizeof *r, MPI_BYTE, 0, MPI_COMM_WORLD); }\n";
    expect_done(looping("step < a.run.n", "struct all a; get(&a.run, rank);", "", outside));
    expect_refused(looping("step < r.n",
                           "struct run r; get(&r, rank); struct all a, b; a.run.n = rank;"
                           "get(&b.run, rank);",
                           "", outside),
                   kDiffer);
}

TEST(UniformityTest, AnAssignmentToAFieldOfOneStructIsNoneToThatOfAnother)
{
    const std::string outside =
        "struct cfg { int n, k; };\n"
        "static struct cfg *make(void) { struct cfg *p = malloc(sizeof(struct cfg));"
        " p->n = 0; return p; }\n"
        "static void *get(size_t n, size_t of) { return calloc(n, of); }\n";
    expect_done(
        looping("step < a.n", "struct cfg a; a.n = rank; a.n = 5;", "", "struct cfg { int n; };"));
    expect_done(
        looping("step < a->n", "struct cfg *a = make(); a->n = rank; a->n = 5;", "", outside));
    for (const std::string both :
         {"struct cfg x, y, *a = &x, *b = &y;", "struct cfg *a = make(), *b = make();",
          "struct cfg *a, *b; for (int i = 0; i < 2; i++) { b = a; a = malloc(sizeof *a); }",
          "struct cfg *a = malloc(2 * sizeof *a), *b = a + 1;",
          "struct cfg *a = get(2, sizeof *a), *b = a + 1;",
          "struct cfg *a = calloc(2, sizeof *a), *b = a + 1;"})
        expect_refused(looping("step < a->n", both + "a->n = rank; b->n = 5;", "", outside),
                       kDiffer);
    expect_refused(looping("step < x.n",
                           "struct cfg x, y; x.n = rank; y.n = 1;"
                           "MPI_Bcast(&y, sizeof y, MPI_BYTE, 0, MPI_COMM_WORLD);",
                           "", outside),
                   kDiffer);
    expect_refused(looping("step < x.n", "struct cfg x; x.n = rank; third(x);", "",
                           outside + "static int third(struct cfg c) { c.n = 3; return c.n; }\n"),
                   kDiffer);
}

TEST(UniformityTest, WhatIsBroadcastInPartStaysDifferent)
{
    const std::string outside =
        "struct cfg { int n, k; };\n"
        "static void share(int *p) { MPI_Bcast(p, 1, MPI_INT, 0, MPI_COMM_WORLD); }\n"
        "static void share_on(int *p) { share(p); }\n"
        "static void set(int *p) { *p = 4; }\n";
    const std::string own = "struct cfg c; int a[2]; c.n = a[0] = 4; c.k = a[1] = rank;";
    const auto bcast = [](const std::string &what) {
        return "MPI_Bcast(" + what + ", 0, MPI_COMM_WORLD);";
    };
    for (const std::string whole : {"&c, 2, MPI_INT", "&c, sizeof c, MPI_BYTE"})
        expect_done(looping("step < c.k", own + bcast(whole), "", outside));
    for (const std::string part :
         {"&c, 1, MPI_INT", "&c, n, MPI_BYTE", "&c, 1, pair", "&c.n, 1, MPI_INT"})
        expect_refused(
            looping("step < c.k", own + "MPI_Datatype pair = 3;" + bcast(part), "", outside),
            kDiffer);
    expect_done(looping("step < a[1]", own + bcast("a, 2, MPI_INT"), "", outside));
    for (const std::string part : {"a, 1, MPI_INT", "a, 2, MPI_BYTE", "a + 1, 1, MPI_INT"})
        expect_refused(looping("step < a[1]", own + bcast(part), "", outside), kDiffer);
    expect_done(looping("step < n", "n = rank; share_on(&n);", "", outside));
    expect_done(looping("step < n", "n = rank; set(&n);", "", outside));
    expect_refused(looping("step < n", "n = rank; MPI_Bcast(&n, 1, MPI_BYTE, 0, MPI_COMM_WORLD);"),
                   kDiffer);
    for (const std::string call : {"share_on(a);", "set(a);", "set(&a[0]);"})
        expect_refused(looping("step < a[1]", own + call, "", outside), kDiffer);
}

TEST(UniformityTest, WhatAPointerLeadsToIsFollowed)
{
    const std::string outside =
        "struct cfg { int n, k; int *at; }; static int *kept; static int shared = 4, other = 4;\n"
        "static void keep(int *p) { kept = p; }\n"
        "static int *same(int *p) { return p; }\n"
        "static void put(int *p, int by) { *p = by; }\n"
        "static void put_kept(int *p, int by) { *kept = by; }\n"
        "static void get(int *p, int by) { *p = by; MPI_Bcast(p, 1, MPI_INT, 0, MPI_COMM_WORLD); "
        "}\n"
        "static int first(int *p) { return *p; }\n";
    expect_done(looping("step < n", "int m = 3, *q = &m; *q = rank;", "", outside));
    expect_done(looping("step < n", "get(&n, rank);", "", outside));
    expect_done(looping("step < n", "keep(&shared); *kept = rank;", "", outside));
    expect_done(
        looping("step < c.n", "struct cfg c, *q = &c; c.k = c.n = 3; q->k = rank;", "", outside));
    for (const std::string store :
         {"int *q = &n; *q = rank;", "int *q; q = &n; q[0] = rank;", "int *q = &n; put(q, rank);",
          "int *q = &n, **r = &q; **r = rank;", "keep(&n); *kept = rank;",
          "keep(&n); put_kept(&n, rank);", "*same(&n) = rank;",
          "struct cfg c; c.at = &n; *c.at = rank;", "int *a[2]; a[1] = &n; *a[0] = rank;",
          "struct cfg c = {1, 2, &n}; *c.at += rank;", "int *q = &n; if (rank) *q = 3;",
          "int m, *q = rank ? &n : &m; *q = 3;", "int *q = &n; (*q) += rank;",
          "void *q = &n; memcpy(q, &rank, sizeof n);",
          "int m, *q = &n, *s; s = rank ? q : &m;"
          " (*s)++;"})
        expect_refused(looping("step < n", store, "", outside), kDiffer);
    expect_refused(looping("step < shared", "keep(&shared); *kept = rank;", "", outside), kDiffer);
    expect_refused(looping("step < c.n",
                           "struct cfg c, d, *q = rank ? &c : &d; c.n = d.n = 9;"
                           "q->n = 3;",
                           "", outside),
                   kDiffer);
    expect_done(looping("step < n", "n = rank; put(&n, 4);", "", outside));
    expect_refused(looping("step < n", "int m; put(rank ? &n : &m, 4);", "", outside), kDiffer);
    expect_refused(looping("step < n", "int m, *q = rank ? &n : &m; put(q, 4);", "", outside),
                   kDiffer);
    expect_refused(looping("step < a[0]", "int a[2] = {4, 4}; a[rank % 2] = 5;", "", outside),
                   kDiffer);
    expect_refused(
        looping("step < first(a)", "int *a = malloc(4), *b = a; *a = 3; *b = rank;", "", outside),
        kDiffer);
    expect_refused(looping("step < c.n",
                           "struct cfg c; c.n = 3; *(int *)((char *)&c + argc) = rank;", "",
                           outside),
                   kDiffer);
}

TEST(UniformityTest, APointerThatIsNotFollowedMayLeadToAnythingWhoseAddressIsKept)
{
    const std::string outside =
        "typedef __builtin_va_list va_list; struct s { int *p; int k; };\n"
        "struct t { int *q; int k; }; union u { int *p; char *c; }; long strtol(const char *,"
        " char **, int);\n"
        "static int *pick(int c, ...) { va_list v; __builtin_va_start(v, c);"
        " int *p = __builtin_va_arg(v, int *); __builtin_va_end(v); return p; }\n"
        "static int *same(int *p) { return p; }\n";
    for (const std::string store :
         {"int *z = NULL, *q = z ?: &n; *q = rank;",
          "int m, *z = &n, *q = z ?: &m; *q = rank;",
          "int *q = same(NULL) ?: same(&n); *q = rank;",
          "int m; *(argc ? &m : &n) = rank;",
          "struct s x = {&n}, y = {&n}; *(argc ? x : y).p = rank;",
          "*({ step = 0; &n; }) = rank;",
          "int *q = ({ int m = 3; m++; &n; }); *q = rank;",
          "int **q = (int *[]){&n, NULL}; *q[0] = rank;",
          "struct s *q = &(struct s){&n, 1}; *q->p = rank;",
          "int *q = *(int **){&(int *){&n}}; *q = rank;",
          "int *_Atomic q = &n; *q = rank;",
          "union u v; v.p = &n; *v.p = rank;",
          "union u v; v.p = &n; *v.c = rank;",
          "union u v = {.c = (char *)&n}; *v.p = rank;",
          "union { struct s s; struct t t; } v; struct s *x = &v.s; struct t *y = &v.t;"
          " x->p = &n; *y->q = rank;",
          "int *q = pick(1, &n); *q = rank;",
          "struct s x = {&n}; struct t y; memcpy(&y, &x, sizeof x); *y.q = rank;",
          "struct s x = {&n}; char b[16]; struct t y; memcpy(b, &x, 16); memcpy(&y, b, 16);"
          " *y.q = rank;",
          "struct s x = {&n}; void *v = &x; struct t *y = v; *y->q = rank;",
          "int *x = &n; void *v = &x; struct t *y = v; *y->q = rank;",
          "struct s x = {&n}; void *v = &x; **(int **)v = rank;",
          "struct { int *a[2]; } x = {{&n, &n}}, y; y = x; *y.a[1] = rank;"})
        expect_refused(looping("step < n", store, "", outside), kDiffer);
    expect_refused(looping("step < b[0]",
                           "char b[4] = \"3\", *e; n = strtol(b, &e, 10); e[0] = rank;", "",
                           outside),
                   kDiffer);
    expect_done(looping("step < n", "int m, k, *q = pick(1, &m); *q = rank;", "", outside));
    expect_done(looping("step < n", "int m, *z = NULL, *q = z ?: &m; *q = rank;", "", outside));
}

TEST(UniformityTest, AMemberIsOneOfAStruct)
{
    const std::string outside =
        "struct s { int n, k; }; static struct s tab[4];\n"
        "static int of(struct s *p) { return p->n; } static int by_value(struct s t) {"
        " return t.n; }\n"
        "static int below(struct s *p) { return of(p); }\n"
        "static struct s made(int n) { struct s t = {n, 3}; return t; }\n";
    const std::string fill = "for (int i = 0; i < 4; i++) tab[i].n = i + 3; tab[1].k = rank;";
    for (const std::string which :
         {"n = tab[rank].n;", "struct s *p = tab + rank; n = p->n;", "n = of(&tab[rank]);",
          "n = below(&tab[rank]);", "n = by_value(tab[rank]);",
          "struct s a = {3}, b = {4}; n = (rank ? &a : &b)->n;",
          "struct s a = {3}, b = {4}; n = (rank ? a : b).n;", "struct s t = tab[rank]; n = t.n;",
          "struct s t; t = tab[rank]; n = t.n;", "struct s t = {rank, 3}; n = t.n;",
          "struct s t[2] = {{3, 4}, {rank, 3}}; n = t[1].n;", "n = (struct s){rank, 3}.n;",
          "n = made(rank).n;"})
        expect_refused(looping("step < n", fill + which, "", outside), kDiffer);
    for (const std::string which :
         {"n = tab[argc].n;", "n = below(&tab[1]);", "n = below(tab);", "n = by_value(tab[2]);",
          "struct s t = {3, rank}; n = t.n;", "n = made(4).n;"})
        expect_done(looping("step < n", fill + which, "", outside));
}

TEST(UniformityTest, AValueOfABlockOrOfArgumentsWithoutNames)
{
    expect_refused(looping("step < n", "n = ({ int t = rank; t; });"), kDiffer);
    expect_done(looping("step < n", "n = ({ int t = argc; t; });"));
    expect_refused(looping("step < n", "n = pick(1, rank);", "",
                           "typedef __builtin_va_list va_list;\n"
                           "static int pick(int c, ...) { va_list v; __builtin_va_start(v, c);"
                           " int n = __builtin_va_arg(v, int); __builtin_va_end(v); return n; }"),
                   kDiffer);
}

TEST(UniformityTest, ABlockIsOneOnEachRank)
{
    const std::string outside =
        "struct run { int n; double *a; };\n"
        "static void *get(size_t n) { void *p = malloc(n); return p; }\n"
        "static struct run *make(int n) { struct run *r = get(sizeof(struct run)); r->n = n;"
        " return r; }\n"
        "static int odd(int n) { if (n % 2) return 3; return 4; }\n";
    const std::string block = "struct run *r; r = make(10);"
                              "if (rank > 2) r->a = get(8 + rank);";
    expect_done(looping("step < r->n", block, "", outside));
    expect_refused(looping("step < r->n", block + "if (rank) r->n = 3;", "", outside), kDiffer);
    expect_refused(looping("step < r->n", block + "r->n = odd(rank);", "", outside), kDiffer);
    expect_refused(looping("step < r->n", block + "if (rank) count();  r->n = count();", "",
                           outside + "static int calls;\n"
                                     "static int count(void) { int n = ++calls; return n; }\n"),
                   kDiffer);
    expect_refused(looping("step < r->n",
                           block + "struct run *q = get(sizeof(struct run)); q->n = 8;"
                                   "r = rank ? r : q;",
                           "", outside),
                   kDiffer);
}

TEST(UniformityTest, AFunctionMayReturnACommunicatorOfAllRanks)
{
    const std::string outside =
        "static MPI_Comm kept, sub; static MPI_Comm world(void) { return MPI_COMM_WORLD; }\n"
        "static MPI_Comm get(void) { return kept; } static MPI_Comm part(void) { return sub; }\n"
        "static MPI_Comm either(int c) { if (c) return MPI_COMM_WORLD; return sub; }\n";
    const auto shared = [&](const std::string &comm, const std::string &before = "") {
        return looping("step < n",
                       "MPI_Comm q; MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &sub);" + before +
                           "if (rank == 0) n = 12; MPI_Bcast(&n, 1, MPI_INT, 0, " + comm + ");",
                       "", outside);
    };
    expect_done(shared("world()"));
    expect_done(shared("get()", "kept = MPI_COMM_WORLD;"));
    expect_done(shared("get()", "MPI_Comm_dup(world(), &kept);"));
    expect_done(shared("q", "q = world();"));
    expect_refused(shared("get()"), kDiffer);
    expect_refused(shared("get()", "kept = argc ? world() : sub;"), kDiffer);
    expect_refused(shared("part()"), kDiffer);
    expect_refused(shared("either(argc)"), kDiffer);
    expect_refused(shared("q", "q = either(argc);"), kDiffer);
}

TEST(UniformityTest, AnArrayThatIsBroadcastAsAWholeIsTheSame)
{
    const std::string outside =
        "static void share(int *p, int k) { MPI_Bcast(p, k, MPI_INT, 0, MPI_COMM_WORLD); }\n"
        "static void share_other(int *p, int k, int *q) { p = q; MPI_Bcast(p, k, MPI_INT, 0, "
        "MPI_COMM_WORLD); }\n"
        "struct t { int a[4]; };\n";
    const auto shared = [&](const std::string &before, const std::string &share) {
        return looping("step < n",
                       "int m = argc + 3, b[9];" + before + "a[0] = rank;" + share + "n = a[0];",
                       "", outside);
    };
    const auto bcast = [](const std::string &what) {
        return "MPI_Bcast(" + what + ", 0, MPI_COMM_WORLD);";
    };
    const std::string array = "int a[m];";
    for (const std::string what :
         {"a, m, MPI_INT", "&a[0], m, MPI_INT", "a, sizeof a, MPI_BYTE",
          "a, sizeof(a) / sizeof(a[0]), MPI_INT", "a, sizeof a / sizeof(int), MPI_INT",
          "a, m * sizeof(int), MPI_BYTE", "a, sizeof(int) * m, MPI_BYTE"})
        expect_done(shared(array, bcast(what)));
    for (const std::string what :
         {"a, m - 1, MPI_INT", "a, m, MPI_BYTE", "&a[1], m, MPI_INT", "a, argc, MPI_INT",
          "a, sizeof b, MPI_BYTE", "a, sizeof a / sizeof(double), MPI_INT", "a, 2 * m, MPI_BYTE"})
        expect_refused(shared(array, bcast(what)), kDiffer);
    expect_refused(shared(array + "m = 2;", bcast("a, m, MPI_INT")), kDiffer);
    expect_refused(shared(array + "int *p = &m; *p = 2;", bcast("a, m, MPI_INT")), kDiffer);
    expect_done(shared("int a[4];", bcast("&a[0], 4, MPI_INT")));
    expect_done(shared("int a[4];", "share(a, 4);"));
    expect_done(shared(array, "share(a, m);"));
    expect_refused(shared("int a[4];", "share(a, 3);"), kDiffer);
    expect_refused(shared("int a[4];", "share(a, 4); share(b, 4);"), kDiffer);
    expect_refused(shared("int a[4];", "share_other(a, 4, b);"), kDiffer);
    /* A row is not all of it, and casts and names of types may change a length. */
    const auto rows = [&](const std::string &what) {
        return looping("step < a[1][1]", "int a[2][2]; a[1][1] = rank;" + bcast(what), "", outside);
    };
    for (const std::string what : {"&a[0][0], 4, MPI_INT", "a, 4, MPI_INT", "a[0], 4, MPI_INT"})
        expect_done(rows(what));
    for (const std::string what :
         {"&a[0][0], 2, MPI_INT", "a[0], 2, MPI_INT", "a[1], 2, MPI_INT", "&a[1][0], 2, MPI_INT"})
        expect_refused(rows(what), kDiffer);
    expect_refused(shared(array, bcast("a, (char)m, MPI_INT")), kDiffer);
    expect_done(shared(array, bcast("a, (long)m, MPI_INT")));
    expect_refused(shared("typedef int row[m]; m = 1; row a;", bcast("a, m, MPI_INT")), kDiffer);
    expect_refused(looping("step < y.a[0]",
                           "struct t x, y; y.a[0] = rank; MPI_Bcast(x.a, 4, MPI_INT, 0, "
                           "MPI_COMM_WORLD);",
                           "", outside),
                   kDiffer);
}

TEST(UniformityTest, WhatTheLibraryCallsIsCalledAnyNumberOfTimes)
{
    const std::string outside =
        "void qsort(void *, size_t, size_t, int (*)(const void *, const void *)); typedef int "
        "compare(const void *, const void *); static int calls, own;\n"
        "int MPI_Op_create(void (*)(void *, void *, int *, MPI_Datatype *), int, MPI_Op *);\n"
        "static int by(const void *a, const void *b) { calls++; return *(int *)a - *(int *)b; }\n"
        "static int plain(const void *a, const void *b) { return *(int *)a - *(int *)b; }\n"
        "static int by_own(const void *a, const void *b)"
        " { return (*(int *)a ^ own) - (*(int *)b ^ own); }\n"
        "static void add(void *a, void *b, int *n, MPI_Datatype *t) { calls++; }\n";
    const std::string array = "int a[4] = {4, 3, 2, 1}; own = rank;";
    for (const std::string how : {"by", "&by", "(compare *)by", "c"})
        expect_refused(looping("step < calls",
                               array + "compare *c = by; a[0] = rank; qsort(a, 4, 4, " + how + ");",
                               "", outside),
                       kDiffer);
    expect_refused(looping("step < a[0]", array + "qsort(a, 4, 4, by_own);", "", outside), kDiffer);
    expect_done(looping("step < a[0]", array + "qsort(a, 4, 4, plain);", "", outside));
    expect_refused(looping("step < calls",
                           "MPI_Op o; MPI_Op_create(add, 1, &o); int x = 1, y;"
                           "MPI_Bcast(&calls, 1, MPI_INT, 0, MPI_COMM_WORLD);"
                           "MPI_Allreduce(&x, &y, 1, MPI_INT, o, MPI_COMM_WORLD);",
                           "", outside),
                   kDiffer);
}

TEST(UniformityTest, WhatAFunctionOfTheLibraryReadsByAPointerMayDiffer)
{
    const std::string outside =
        "char *strcpy(char *, const char *); size_t strlen(const char *); long strtol(const char *,"
        " char **, int); int gethostname(char *, size_t); int sscanf(const char *, const char *,"
        " ...); char *fgets(char *, int, FILE *);\n"
        "struct c { char *text; }; static char line[80], *cursor = line;\n"
        "static int next(void) { return strtol(cursor, &cursor, 10); }\n"
        "static int of(struct c *c) { return atoi(c->text); }\n";
    const std::string read = "FILE *f = fopen(argv[1], \"r\"); fgets(line, 80, f); fclose(f);";
    for (const std::string which :
         {"char l[80], *s = l; if (rank == 0) strcpy(l, \"12\"); n = atoi(s);",
          "char b[64], *p = b; gethostname(b, 64); n = strlen(p);",
          "int m = 0, *p = &m; m = rank; memcpy(&n, p, sizeof n);",
          "char l[80], *s = l; gethostname(l, 80); sscanf(s, \"%d\", &n);",
          "char l[80]; struct c c = {l}; gethostname(l, 80); n = atoi(c.text);",
          "char l[80]; struct c c = {l}; gethostname(l, 80); n = of(&c);",
          "char *l = malloc(80), *s = l; gethostname(l, 80); n = atoi(s);"})
        expect_refused(looping("step < n", which, "", outside), kDiffer);
    expect_refused(looping("step < n", read + "n = next();", "", outside), kDiffer);
    expect_refused(
        looping("step < n", "struct c c; c.text = line;" + read + "n = atoi(c.text);", "", outside),
        kDiffer);
    expect_done(looping("step < n",
                        "char l[8] = \"12\", h[8], *s = l, *t = h; gethostname(t, 8);"
                        "n = atoi(s);",
                        "", outside));
    expect_done(looping("step < n", "char *s = argv[1]; sscanf(s, \"%d\", &n);", "", outside));
    expect_refused(looping("step < n",
                           "char h[8], *s = h; gethostname(h, 8);"
                           "FILE *o = strlen(s) > 4 ? stderr : stdout;",
                           "fprintf(o, \"%d\", step);", outside + "extern FILE *stdout, *stderr;"),
                   "may be another one in a successor");
}

TEST(UniformityTest, AStaticVariableOfAFunctionKeepsWhatItIs)
{
    const std::string outside =
        "static int f(int r) { static int k = 10; int m = k; k = r; return m; }\n"
        "static int g(int d, int r) { static int k = 10; if (d == 0) return k; k = r;"
        " return g(d - 1, r); }\n"
        "static int h(int r) { static int k = 10; k = 3; int m = k; k = r; return m; }\n";
    expect_refused(looping("step < n", "n = f(rank); n = f(rank);", "", outside), kDiffer);
    expect_refused(looping("step < n", "n = g(2, rank);", "", outside), kDiffer);
    expect_done(looping("step < n", "n = f(argc); n = f(argc);", "", outside));
    expect_done(looping("step < n", "n = h(rank); n = h(rank);", "", outside));
}

TEST(UniformityTest, AStructIsMemory)
{
    const std::string outside =
        "struct s { int k, m; }; struct in { int n; }; struct out { struct in a[2]; int m; };\n"
        "size_t fread(void *, size_t, size_t, FILE *); void *memset(void *, int, size_t);\n";
    expect_refused(
        looping("step < n", "struct s v; v.k = rank; memcpy(&n, &v, sizeof n);", "", outside),
        kDiffer);
    expect_refused(looping("step < n",
                           "struct s v[2]; int b[4]; v[1].k = rank; memcpy(b, v, sizeof b);"
                           "n = b[0];",
                           "", outside),
                   kDiffer);
    expect_refused(looping("step < o.a[0].n",
                           "struct out o; FILE *f = fopen(argv[1], \"r\");"
                           "fread(&o, sizeof o, 1, f); fclose(f);",
                           "", outside),
                   kDiffer);
    const std::string copy = "struct s v, w; v.k = rank; v.m = 3; memcpy(&w, &v, sizeof w);";
    expect_refused(looping("step < w.k", copy, "", outside), kDiffer);
    expect_done(looping("step < w.m", copy, "", outside));
    expect_done(looping("step < n", "struct s v = {3, 4}; memcpy(&n, &v, sizeof n);", "", outside));
    expect_refused(looping("step < n",
                           "struct s v; v.k = MPI_Wtime(); v.m = 2; int *p = (int *)&v;"
                           "FILE *o = *p > 4 ? stderr : stdout;",
                           "fprintf(o, \"%d\", step);", outside + "extern FILE *stdout, *stderr;"),
                   "may be another one in a successor");
}

TEST(UniformityTest, AFieldOfSeveralStructsIsNotReplaced)
{
    const std::string outside =
        "struct s { int n; };\n static void set(int *p) { *p = 10; }\n"
        "static void share(int *p) { MPI_Bcast(p, 1, MPI_INT, 0, MPI_COMM_WORLD); }\n"
        "static void *get(size_t n) { return malloc(n); }\n";
    for (const std::string by : {"set", "share"}) {
        expect_refused(looping("step < x.n", "struct s x, y; x.n = rank; y.n = 1;" + by + "(&y.n);",
                               "", outside),
                       kDiffer);
        expect_done(looping("step < y.n", "struct s y; y.n = rank;" + by + "(&y.n);", "", outside));
    }
    for (const std::string make : {"malloc(8)", "get(8)", "malloc(k)"})
        expect_refused(looping("step < a->n",
                               "int k = 8; struct s *a = " + make + ", *b = " + make +
                                   "; a->n = rank; b->n = 10;",
                               "", outside),
                       kDiffer);
    expect_done(looping("step < a->n", "struct s *a = get(sizeof *a); a->n = rank; a->n = 10;", "",
                        outside));
}

TEST(UniformityTest, MembersOfOneMemoryAreTheSame)
{
    const std::string outside =
        "struct a { int n; }; struct b { int n; }; union u { int k; struct a a; struct b b; };\n"
        "int gethostname(char *, size_t);\n";
    for (const std::string store :
         {"x.k = 10; x.a.n = rank;", "x.k = 10; x.b.n = rank;", "x.k = 10; *(&x.b.n) = rank;"})
        expect_refused(looping("step < x.k", "union u x;" + store, "", outside), kDiffer);
    expect_refused(
        looping("step < x.n", "struct a x; x.n = 1; ((struct b *)&x)->n = rank;", "", outside),
        kDiffer);
    expect_refused(looping("step < n", "char x[8] = \"1\"; ((struct b *)x)->n = rank; n = atoi(x);",
                           "", outside),
                   kDiffer);
    expect_refused(looping("step < x->n",
                           "char *m = malloc(8); struct a *x = (struct a *)m; gethostname(m, 8);",
                           "", outside),
                   kDiffer);
    expect_done(looping("step < x.k", "union u x, y; x.k = 10;", "", outside));
}

TEST(UniformityTest, TheSizeOfAnArrayIsOfItsDeclaration)
{
    const std::string size = "n = sizeof a / sizeof a[0];";
    expect_refused(looping("step < n", "int a[rank + 1]; a[0] = 0;" + size), kDiffer);
    expect_refused(looping("step < n", "int m = rank, a[m]; m = 3;" + size), kDiffer);
    expect_refused(looping("step < n", "typedef int row[rank + 1]; n = sizeof(row);"), kDiffer);
    expect_done(looping("step < n", "int m = argc, a[m]; m = rank;" + size));
    expect_done(looping("step < n", "int a[9]; a[0] = rank;" + size));
}

TEST(UniformityTest, ArgumentsWithoutNamesThatTheLibraryReads)
{
    const std::string outside =
        "typedef __builtin_va_list va_list; int vsnprintf(char *, size_t, const char *, va_list);\n"
        "static void put(char *b, const char *f, ...) { va_list v; __builtin_va_start(v, f);"
        " vsnprintf(b, 20, f, v); __builtin_va_end(v); }\n";
    expect_refused(
        looping("step < n", "char b[20]; put(b, \"%d\", rank); n = atoi(b);", "", outside),
        kDiffer);
}

TEST(UniformityTest, WhatASuccessorFindsOtherwise)
{
    const std::string outside = "extern FILE *stdin, *stdout, *stderr; int getc(FILE *);"
                                "int *__errno_location(void);\n"
                                "static FILE *input(int c) { return c ? stdin : NULL; }\n";
    const auto chosen = [&](const std::string &before, const std::string &by) {
        return looping("step < n", before + "FILE *to = " + by + " ? stderr : stdout;",
                       "fprintf(to, \"%d\", step);", outside);
    };
    for (const auto &[before, by] : std::initializer_list<std::pair<const char *, const char *>>{
             {"", "*__errno_location()"},
             {"int c = getc(stdin);", "c"},
             {"FILE *in = stdin; int c = getc(in);", "c"},
             {"FILE *in = input(argc); int c = getc(in);", "c"}})
        expect_refused(chosen(before, by), "may be another one in a successor");
    expect_done(chosen("FILE *in = fopen(argv[1], \"r\"); int c = getc(in); fclose(in);", "c"));
}

/* What comes behind the loop a successor does as its predecessor would have. */
TEST(UniformityTest, WhatDiffersAtTheLoopCounts)
{
    const std::string outside = "# 1 \"stdio.h\" 3\nextern FILE *stdout, *stderr;\n"
                                "# 1 \"small.c\"\nstruct l { FILE *to; int k; };\n";
    const std::string put = "fprintf(to, \"%d\", step);";
    const std::string late = "if (MPI_Wtime() - t > 9) to = stderr;" + put;
    const std::string begin = "FILE *to = stdout; double t = MPI_Wtime();";
    expect_done(with_loop(put, begin, outside, late));
    expect_done(with_loop("fprintf(l.to, \"%d\", step);",
                          "struct l l; l.to = stdout; double t = MPI_Wtime();", outside,
                          "if (MPI_Wtime() - t > 9) l.to = stderr; fprintf(l.to, \"x\");"));
    expect_refused(with_loop(put, begin + late, outside), "may be another one in a successor");
    const std::string again = "static FILE *to; static double t;\n"
                              "static void work(void) { double x = 1, y; int step;\n"
                              "for (step = 0; step < 9; step++) {\n"
                              "MPI_Allreduce(&x, &y, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD); x = y;" +
                              put + "} " + late + "}\n";
    const auto calling = [&](const std::string &how) {
        return outside + again +
               "int main(int argc, char **argv) { MPI_Init(&argc, &argv);"
               "to = stdout; t = MPI_Wtime(); " +
               how + " MPI_Finalize(); return 0; }\n";
    };
    expect_done(calling("work();"));
    const auto found = analysed(calling("for (int i = 0; i < argc; i++) work();"),
                                {.loop = "small.c:3", .threshold = 0});
    EXPECT_FALSE(found.is_done());
}

TEST(UniformityTest, AFunctionThatMakesItsCallerEnd)
{
    const auto with = [](const std::string &ask, const std::string &returned = "1",
                         const std::string &last = "0") {
        return looping(
            "step < n", ask, "double z; MPI_Allreduce(&sum, &z, 1, MPI_DOUBLE, 0, g); sum = z;",
            "int access(const char *, int); void exit(int); static MPI_Comm g;\n"
            "static int open_all(MPI_Comm *c) { if (access(\"in\", 0)) return " +
                returned + "; MPI_Comm_dup(MPI_COMM_WORLD, c); return " + last + "; }\n" +
                (ask.find("init") == std::string::npos
                     ? ""
                     : "static int init(MPI_Comm *c) { if (open_all(c)) return -1;"
                       " return 0; }\n"));
    };
    for (const std::string ask :
         {"if (open_all(&g)) return 1;", "if (open_all(&g) != 0) { printf(\"no\"); exit(1); }",
          "if (open_all(&g) == 1) MPI_Abort(MPI_COMM_WORLD, 1);",
          "if (0 < open_all(&g)) { printf(\"no\"); return 1; }", "if (init(&g) < 0) return 1;"})
        expect_done(with(ask));
    expect_done(with("if (!open_all(&g)) return 1;", "0", "1"));
    for (const std::string ask :
         {"open_all(&g);", "if (open_all(&g)) printf(\"no\");", "if (!open_all(&g)) return 1;",
          "if (open_all(&g) > 1) return 1;", "int e = open_all(&g); if (e) printf(\"no\");",
          "if (open_all(&g)) return 1; open_all(&g);", "if (init(&g) > 0) return 1;",
          "if (open_all(&g)) { if (argc) return 1; }"})
        expect_refused(with(ask), "may be another one in a successor");
}

/* Each function calls two others, and changes what they read: to go through all of them, in
 * whatever order, until nothing changes, would take a round for each. */
TEST(UniformityTest, AFunctionIsFollowedAFewTimesOnly)
{
    constexpr int functions = 40;
    std::string outside =
        "static int g[1], k0;\nstatic int f0(int n, int *out) { return *out = n; }\n";
    for (int i = 1; i < functions; i++) {
        const auto own = std::to_string(i), one = std::to_string(i - 1),
                   other = std::to_string(i / 2);
        outside += "static int k" + own + "; static int f" + own + "(int n, int *out) { int t = k" +
                   one + "; if (n > 3) k" + own + " = t + n; f" + one + "(n - 1, &t); f" + other +
                   "(t, &k" + own + "); *out = t; return t + n; }\n";
    }
    const auto found = analysed(
        looping("step < n", "", "int r; sum += f" + std::to_string(functions - 1) + "(rank, &r);",
                outside));
    ASSERT_NE(found.rounds, 0u);
    EXPECT_LE(found.rounds, 2u * 12 * functions);
}

TEST(UniformityTest, WhatIsReducedToAllIsTheSame)
{
    expect_done(looping("all > 0.5", ""));
    expect_refused(looping("sum < 500", ""), kDiffer);
}

TEST(UniformityTest, WhatIsReceivedIsNot)
{
    expect_refused(looping("n > 0", "",
                           "MPI_Send(&n, 1, 0, 0, 5, MPI_COMM_WORLD);"
                           "MPI_Recv(&n, 1, 0, 0, 5, MPI_COMM_WORLD, NULL);"),
                   kDiffer);
}

TEST(UniformityTest, FunctionsAndFieldsAreFollowed)
{
    const std::string outside =
        "struct run { int n; double end; };\n"
        "static void get(struct run *r, int rank) { r->n = 3; if (rank == 0) r->n = 7; }\n"
        "static void share(struct run *r) { MPI_Bcast(r, sizeof *r, MPI_BYTE, 0, MPI_COMM_WORLD); "
        "}\n"
        "static int scaled(int by) { return by * 2; }";
    expect_done(looping("step < r.n", "struct run r; get(&r, rank); share(&r);", "", outside));
    expect_refused(looping("step < r.n", "struct run r; share(&r); get(&r, rank);", "", outside),
                   kDiffer);
    expect_done(looping("step < scaled(n)", "", "", outside));
    expect_refused(looping("step < scaled(rank)", "", "", outside), kDiffer);
}

TEST(UniformityTest, ALoopThatOnlyOneRankRuns)
{
    expect_refused("int main(int argc, char **argv) { int step, rank; double all;\n"
                   "MPI_Init(&argc, &argv); MPI_Comm_rank(MPI_COMM_WORLD, &rank);\n"
                   "if (rank == 0) for (step = 0; step < 9; step++)\n"
                   "{ MPI_Send(&all, 1, 0, 0, 5, MPI_COMM_WORLD); MPI_Recv(&all, 1, 0, 0, 5, "
                   "MPI_COMM_WORLD, NULL); }\n"
                   "MPI_Finalize(); return 0; }\n",
                   kDiffer);
}

TEST(UniformityTest, TheTimeIsNotTheSame)
{
    expect_refused(looping("MPI_Wtime() < 3", ""), kDiffer);
}

/* By way of void *, which says nothing of a type. What a function hands out is not one block. */
TEST(UniformityTest, ABlockThatIsAStructAndNumbers)
{
    const auto loop = [](const std::string &before, const std::string &bound) {
        return "struct range { int from, to; };\nstruct other { int a, b; };\n"
               "static void *get(size_t n) { return malloc(n); }\n"
               "int main(int argc, char **argv) { int step, rank; double sum = 1, all;\n"
               "MPI_Init(&argc, &argv); MPI_Comm_rank(MPI_COMM_WORLD, &rank);\n" +
               before + "\nfor (step = 0; step < " + bound +
               "; step++) { MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);"
               " sum += all; }\nprintf(\"%f\", sum); MPI_Finalize(); return 0; }\n";
    };
    const std::string make = "void *v = malloc(8); struct range *r = v; r->from = 0; r->to = 50;";
    expect_done(loop(make, "r->to"));
    expect_refused(loop(make + "int *raw = v; raw[1] += rank;", "r->to"), "in different numbers");
    expect_refused(loop(make + "struct other *o = v; o->b += rank;", "r->to"),
                   "in different numbers");
    expect_done(
        loop("struct range *r = get(8); r->to = 50; int *raw = get(8); raw[1] = rank;", "r->to"));
}

} // namespace zc::instrument
