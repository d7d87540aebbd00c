/* SPDX-License-Identifier: BSD-3-Clause */
#include "small_source.h"

namespace zc::instrument {

TEST(ObstaclesTest, UnknownFunctions)
{
    expect_refused(with_loop("strange(&sum);", "", "int strange(double *);"),
                   "small.c:7: strange() is not in the sources");
}

TEST(ObstaclesTest, RandomNumbersOfTheLibrary)
{
    expect_refused(with_loop("sum += rand();"), "rand(): random numbers' state");
    /* Before the loop they are drawn again, and then replaced by what was saved. */
    expect_done(with_loop("", "srand(3u); sum = rand();"));
}

TEST(ObstaclesTest, Jumps)
{
    expect_refused(with_loop("", "long place[8]; setjmp(place);"), "setjmp(): what setjmp() saves");
}

TEST(ObstaclesTest, AFileThatTheInitialisationWrites)
{
    expect_refused(with_loop("", "FILE *f = fopen(\"out\", \"w\"); fclose(f);"),
                   "would overwrite it");
    expect_done(with_loop("", "FILE *f = fopen(\"in\", \"r\"); fclose(f);"));
}

TEST(ObstaclesTest, PointersThatAreNumbers)
{
    expect_refused(with_loop("sum += *(double *)kept;", "long kept = (long)&sum;"),
                   "a pointer becomes a number");
    expect_refused(with_loop("sum += *(double *)kept;", "long kept = (long)&sum;"),
                   "a number becomes a pointer");
}

TEST(ObstaclesTest, PointersToVoid)
{
    expect_refused(with_loop("sum += *(double *)p;", "void *p = malloc(8);"),
                   "'p', which is live at the safe point, cannot be saved: p is a pointer to void");
}

TEST(ObstaclesTest, UnionsWithPointers)
{
    expect_refused(with_loop("u.p = &sum; sum += *u.p; if (step > 3) u.n = 3;",
                             "union both { long n; double *p; } u; u.p = &sum;"),
                   "is a union with pointers");
    expect_done(with_loop("sum += u.x; u.n++;", "union both { long n; double x; } u; u.x = 1;"));
}

TEST(ObstaclesTest, MemoryWithPointersOfAnotherType)
{
    expect_refused(with_loop("sum += *(double *)rows;", "double **rows = malloc(80);"),
                   "memory with pointers is used as another type");
}

TEST(ObstaclesTest, Assembler)
{
    expect_refused(with_loop("__asm__ volatile(\"nop\");"), "assembler");
}

TEST(ObstaclesTest, HandlesThatChange)
{
    const std::string make = "MPI_Comm own; MPI_Comm_dup(MPI_COMM_WORLD, &own);";
    expect_refused(with_loop("MPI_Comm_dup(own, &own); MPI_Barrier(own);", make),
                   "MPI_Comm_dup() in the loop of the safe point");
    expect_refused(with_loop("MPI_Barrier(own); own = MPI_COMM_WORLD;", make),
                   "a handle of MPI gets another value");
    expect_done(
        with_loop("MPI_Comm brief; MPI_Comm_dup(MPI_COMM_WORLD, &brief); MPI_Barrier(brief);"));
}

TEST(ObstaclesTest, AFileThatIsLive)
{
    expect_refused(
        with_loop("fprintf(f, \"%d\", step);", "FILE *f = log_file;", "extern FILE *log_file;"),
        "leads to a FILE");
}

TEST(ObstaclesTest, AFileThatIsOnlyEverAStreamOfTheProcess)
{
    const std::string outside =
        "extern FILE *stderr, *stdout;\n"
        "static struct { FILE *to; int level; } logger;\n"
        "static void begin(FILE *to) { logger.to = to; logger.level = 1; }\n"
        "static void tell(int n) { if (logger.to && logger.level)"
        " fprintf(logger.to, \"%d\", n); }\n";
    const std::string start = "begin(rank ? stderr : stdout);";
    expect_done(with_loop("tell(step);", start, outside));
    expect_done(
        with_loop("fprintf(f, \"%d\", step);", "FILE *f = rank ? stderr : stdout;", outside));
    expect_refused(with_loop("tell(step);", start + "begin(fopen(\"log\", \"r\"));", outside),
                   "leads to a FILE");
    expect_refused(with_loop("tell(step);", start + "FILE **to = &logger.to; *to = NULL;", outside),
                   "leads to a FILE");
    expect_refused(with_loop("tell(step); if (step == 3) logger.to = stdout;", start, outside),
                   "a FILE gets another value in the loop");
    expect_refused(with_loop("fprintf(f, \"%d\", step); f = step % 2 ? stderr : stdout;",
                             "FILE *f = stderr;", outside),
                   "a FILE gets another value in the loop");
}

TEST(ObstaclesTest, AFileThatASuccessorMayChooseOtherwise)
{
    const std::string outside =
        "extern FILE *stderr, *stdout; long time(long *); char *getenv(const char *);\n"
        "int fscanf(FILE *, const char *, ...); static struct { FILE *to; int level; } logger;\n"
        "static void begin(FILE *to) { logger.to = to; logger.level = 1; }\n"
        "static FILE *of(int n) { if (n) return stderr; return stdout; }\n";
    const std::string use = "fprintf(f, \"%d\", step);",
                      other = "may be another one in a successor",
                      there = "may be another one there";
    for (const std::string start :
         {"FILE *f = time(NULL) % 2 ? stderr : stdout;",
          "FILE *f; if (time(NULL) % 2) f = stderr;"
          " else f = stdout;",
          "FILE *f = stdout; if (getenv(\"QUIET\")) f = stderr;",
          "FILE *g = fopen(\"quiet\", \"r\"), *f = g ? stderr : stdout; fclose(g);",
          "FILE *g = fopen(\"quiet\", \"r\"), *f; if (g) f = stderr; else f = stdout; fclose(g);",
          "FILE *f; long now; time(&now); switch (now % 2) { case 0: f = stderr; break;"
          " default: f = stdout; }"})
        expect_refused(with_loop(use, start, outside), other);
    expect_refused(with_loop("fprintf(logger.to, \"%d\", step);",
                             "begin(time(NULL) % 2 ? stderr : stdout);", outside),
                   there);
    expect_refused(with_loop("fprintf(logger.to, \"%d\", step);",
                             "begin(stdout); if (time(NULL) % 2) begin(stderr);", outside),
                   there);
    expect_refused(with_loop("MPI_Barrier(c);",
                             "MPI_Comm c = MPI_COMM_WORLD; if (time(NULL) % 2)"
                             " MPI_Comm_dup(MPI_COMM_WORLD, &c);",
                             outside),
                   other);
    for (const std::string start :
         {"FILE *f = rank ? stderr : stdout;", "FILE *f = argc > 1 ? stderr : stdout;",
          "FILE *f; if (rank) f = stderr; else f = stdout; sum = time(NULL);",
          "FILE *g = fopen(\"in\", \"r\"); int v = 0; if (!g) MPI_Abort(MPI_COMM_WORLD, 1);"
          "if (fscanf(g, \"%d\", &v) != 1) return 1; fclose(g); FILE *f = v ? stderr : stdout;"})
        expect_done(with_loop(use, start, outside));
}

TEST(ObstaclesTest, AFileThatIsClosedForGood)
{
    const std::string outside =
        "extern FILE *stderr, *stdout; static FILE *to; static void begin(void) { to = stderr; }\n"
        "static void end(void) { if (to) fclose(to); to = NULL; }\n"
        "static void end_of(FILE *f) { fclose(f); }\n";
    const std::string open = "a successor has the FILE open";
    expect_refused(
        with_loop("fprintf(f, \"x\"); if (step == 3) fclose(f);", "FILE *f = stdout;", outside),
        open);
    expect_refused(with_loop("printf(\"x\"); if (step == 3) fclose(stdout);", "", outside), open);
    expect_refused(with_loop("fprintf(to, \"x\"); if (step == 3) end();", "begin();", outside),
                   open);
    expect_refused(with_loop("fprintf(to, \"x\"); if (step == 3) end_of(to);", "begin();", outside),
                   open);
    expect_done(with_loop("fprintf(to, \"x\");", "begin();", outside, "end();"));
    expect_done(
        with_loop("FILE *f = fopen(\"log\", \"a\"); fclose(f);", "fclose(stdout);", outside));
}

TEST(ObstaclesTest, AtomicOperations)
{
    expect_refused(with_loop("__atomic_store_n(&k, step, 0); sum += k;", "int k = 3;"),
                   "an atomic operation");
}

TEST(ObstaclesTest, AFileThatIsWrittenAsAPartOfMemory)
{
    const std::string outside =
        "extern FILE *stderr, *stdout; void *memset(void *, int, size_t);\n"
        "void *memmove(void *, const void *, size_t); void qsort(void *, size_t, size_t,"
        " int (*)(const void *, const void *)); size_t fread(void *, size_t, size_t, FILE *);\n"
        "struct ctx { FILE *log; int n; }; struct outer { struct ctx in[2]; double x; };\n"
        "static int by_n(const void *a, const void *b) { return a < b; }\n";
    const std::string use = "if (s[0].log) sum += s[0].n;",
                      start = "struct ctx s[2], t[2]; struct outer o; o.x = 3;"
                              "for (int j = 0; j < 2; j++) { s[j].log = stdout; s[j].n = j;"
                              "t[j].log = NULL; t[j].n = 3; o.in[j].log = stderr; }",
                      block = "struct ctx *s = malloc(sizeof *s); s->log = stdout; s->n = 1;",
                      may = "a FILE may get another value in the loop";
    expect_done(with_loop(use, start, outside));
    expect_done(with_loop(use, block, outside));
    for (const std::string write :
         {"memset(&s[1], 0, sizeof *s);", "memset(s, 0, sizeof s);", "memcpy(s, t, sizeof s);",
          "memmove((char *)s, (char *)t, sizeof s);", "__builtin_memcpy(s, t, sizeof s);",
          "memcpy(step % 2 ? s : t, t, sizeof s);", "qsort(s, 2, sizeof *s, by_n);",
          "MPI_Bcast(s, sizeof s, 0, 0, MPI_COMM_WORLD);", "fread(s, sizeof *s, 2, stdout);"})
        expect_refused(with_loop(use + write, start, outside), may);
    expect_refused(with_loop("if (o.in[0].log) memset(&o, 0, sizeof o);", start, outside), may);
    expect_refused(with_loop(use + "memset(s, 0, sizeof *s);", block, outside), may);
    for (const std::string made : {"free(s); s = calloc(1, sizeof *s);", "s = realloc(s, 64);"})
        expect_refused(with_loop(use + made, block, outside),
                       "memory with a FILE in it is made in the loop");
    expect_refused(with_loop(use + "memset(p, 0, 8);", block + "void *p = s;", outside),
                   "leads to a FILE");
    expect_refused(
        with_loop("fprintf(a[0], \"x\");", "FILE *a[2]; a[1] = stdout; set(a);",
                  outside + "extern FILE *others; static void set(FILE **a) { a[0] = others; }"),
        "leads to a FILE");
    expect_refused(with_loop("MPI_Barrier(g.own); memset(&g, 0, sizeof g);",
                             "struct { MPI_Comm own; int n; } g; g.n = 2;"
                             "MPI_Comm_dup(MPI_COMM_WORLD, &g.own);",
                             outside),
                   "a handle of MPI may get another value in the loop");
}

TEST(ObstaclesTest, WhatAnOuterLoopGivesFILEsAndHandlesFirst)
{
    const auto nested = [](const std::string &before, const std::string &call = "",
                           const std::string &outside = "") {
        const std::string inner = "for (int i = 0; i < 9; i++) { double y; MPI_Barrier(q);"
                                  "MPI_Allreduce(&x, &y, 1, 0, 0, MPI_COMM_WORLD); x = y + 1;"
                                  "fprintf(to, \"%g\", x); }";
        return "extern FILE *stderr, *stdout; static double x; struct two { MPI_Comm q; };\n" +
               (call.empty() ? "" : "static void solve(FILE *to, MPI_Comm q) {" + inner + "}\n") +
               outside + "int main(int argc, char **argv) { MPI_Init(&argc, &argv);\n" +
               "MPI_Comm own; MPI_Comm_dup(MPI_COMM_WORLD, &own); struct two two = {own};\n"
               "FILE *log = argc > 1 ? stderr : stdout, *other = stderr;\n" +
               "for (int k = 0; k < 4; k++) {" + before + (call.empty() ? inner : call) +
               "}\nMPI_Finalize(); return 0; }\n";
    };
    const std::string stream = "a FILE may begin with another value",
                      handle = "a handle of MPI may begin with another value";
    for (const std::string q : {"MPI_COMM_WORLD", "own", "two.q"})
        for (const std::string to : {"other", "log"}) {
            expect_done(nested("MPI_Comm q = " + q + "; FILE *to = " + to + ";"));
            expect_done(nested("", "solve(" + to + ", " + q + ");"));
        }
    expect_refused(nested("MPI_Comm q = own; FILE *to = k % 2 ? other : log;"), stream);
    expect_refused(nested("MPI_Comm q = k % 2 ? own : MPI_COMM_WORLD; FILE *to = log;"), handle);
    expect_refused(nested("", "solve(k % 2 ? other : log, own);"), stream);
    expect_refused(nested("", "solve(log, k % 2 ? own : MPI_COMM_WORLD);"), handle);
}

TEST(ObstaclesTest, AnOuterLoopMayBeMadeOfGotos)
{
    const auto again = [](const std::string &before) {
        return "extern FILE *stderr, *stdout; int main(int argc, char **argv) {"
               "MPI_Init(&argc, &argv); double x = 0; int k = 0;\n"
               "FILE *log = stdout, *other = stderr; again:; " +
               before +
               "\nfor (int i = 0; i < 9; i++) { double y;"
               "MPI_Allreduce(&x, &y, 1, 0, 0, MPI_COMM_WORLD); x = y + 1; fprintf(to, \"%g\", x); "
               "}\nif (++k < 4) goto again;\nMPI_Finalize(); return 0; }\n";
    };
    expect_done(again("FILE *to = log;"));
    expect_refused(again("FILE *to = k % 2 ? other : log;"), "a FILE may begin with another value");
}

TEST(ObstaclesTest, WhatIsReadOfStdinDoesNotMove)
{
    const std::string
        outside =
            "extern FILE *stdin; char *fgets(char *, int, FILE *); int fgetc(FILE *);\n"
            "static FILE *input; static int next(void) { FILE *f = stdin; return fgetc(f); }\n",
        used = "stdin is used at the safe point or behind it";
    expect_done(with_loop("sum++;", "char b[80]; fgets(b, 80, stdin);", outside));
    expect_refused(with_loop("char b[80]; fgets(b, 80, stdin);", "", outside), used);
    expect_refused(with_loop("sum += next();", "", outside), used);
    expect_refused(with_loop("sum++;", "", outside, "sum += next();"), used);
    expect_refused(with_loop("sum += fgetc(in);", "FILE *in = stdin;", outside), "leads to a FILE");
    expect_refused(with_loop("sum += fgetc(input);", "input = stdin;", outside), "leads to a FILE");
}

TEST(ObstaclesTest, RecursionOnTheWay)
{
    expect_refused(
        "static void go(int n) { int i; double x = n, y;\n"
        "for (i = 0; i < 9; i++) { MPI_Allreduce(&x, &y, 1, 0, 0, MPI_COMM_WORLD); }\n"
        "if (n) go(n - 1); }\n"
        "int main(int argc, char **argv) { MPI_Init(&argc, &argv); go(3); MPI_Finalize(); }",
        "so that a successor could come to the safe point in another call");
}

TEST(ObstaclesTest, StaticVariablesOfFunctions)
{
    expect_refused(with_loop("sum += next();", "",
                             "static int next(void) { static int n, m; return ++n + ++m; }"),
                   "is static in a function");
}

TEST(ObstaclesTest, ThreadLocalVariables)
{
    expect_refused(with_loop("sum += mine++;", "", "static _Thread_local int mine;"),
                   "is thread-local");
}

TEST(ObstaclesTest, TheCLibraryIsKnown)
{
    const std::string outside =
        "size_t strcspn(const char *, const char *); char *strchr(const char *, int);"
        "unsigned long long strtoull(const char *, char **, int); int isxdigit(int);"
        "double frexp(double, int *); double nan(const char *); long long llabs(long long);"
        "float strtof(const char *, char **); const unsigned short **__ctype_b_loc(void);\n";
    expect_done(
        with_loop("int power; char *end; sum += frexp(sum, &power) + strcspn(argv[0], \"=\")"
                  "+ llabs(power) + isxdigit(argv[0][0]) + strtoull(argv[0], &end, 16);"
                  "sum += strtof(end, NULL) + (*__ctype_b_loc())[(int)*end];"
                  "if (strchr(argv[0], 'x') || __builtin_isnormal(nan(\"\")) ||"
                  "    __builtin_isgreater(sum, __builtin_huge_val()) ||"
                  "    sum > __builtin_inff()) sum = 0;",
                  "", outside));
}

TEST(ObstaclesTest, WhatIsSetOfAHandleAndNamesThatLibrariesMayHaveAreNotKnown)
{
    expect_refused(with_loop("MPI_Comm_set_name(MPI_COMM_WORLD, \"a name\");", "",
                             "int MPI_Comm_set_name(MPI_Comm, const char *);\n"),
                   "MPI_Comm_set_name() is not in the sources, and what it does is not known");
    expect_refused(with_loop("trap();", "", "void trap(void);\n"),
                   "trap() is not in the sources, and what it does is not known");
}

TEST(ObstaclesTest, CollectiveCallsOfNeighboursAreKnown)
{
    const std::string outside =
        "int MPI_Dist_graph_create_adjacent(MPI_Comm, int, const int *, const int *, int, "
        "const int *, const int *, MPI_Info, int, MPI_Comm *);"
        "int MPI_Neighbor_alltoall(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, "
        "MPI_Comm); int MPI_Ineighbor_allgather(const void *, int, MPI_Datatype, void *, int, "
        "MPI_Datatype, MPI_Comm, MPI_Request *);\n";
    const std::string graph = "MPI_Comm graph; MPI_Request r; double of[8]; int other[1] = {rank};"
                              "MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, other, other, 1,"
                              "other, other, 0, 0, &graph);";
    const std::string start = "MPI_Ineighbor_allgather(&sum, 1, 0, of, 1, 0, graph, &r);";
    expect_done(with_loop("MPI_Neighbor_alltoall(&sum, 1, 0, of, 1, 0, graph);" + start +
                              "MPI_Wait(&r, NULL); sum += of[0];",
                          graph, outside));
    expect_refused(with_loop(start, graph, outside), "a request may be active");
    expect_refused(with_loop("MPI_Neighbor_alltoall(&sum, 1, 0, of, 1, 0, graph);"
                             "if (of[0] > 3) break;",
                             graph, outside),
                   "ranks may pass it in different numbers");
}

TEST(ObstaclesTest, AttributesThatCallOrName)
{
    expect_refused(with_loop("x += all;", "__attribute__((cleanup(show))) double x = 1;",
                             "static void show(double *x) { printf(\"%f\", *x); }"),
                   "(cleanup)");
    expect_refused(with_loop("total += 1;", "",
                             "static double total; __attribute__((destructor)) static void show"
                             "(void) { printf(\"%f\", total); }"),
                   "(constructor, destructor)");
    expect_refused(with_loop("one += 1;", "",
                             "double one; extern double other __attribute__((alias(\"one\")));"),
                   "(alias)");
}

/* What is called by the name of its source is of one only. */
TEST(ObstaclesTest, NamesThatTwoSourcesHave)
{
    const auto refused = [](const std::string &first, const std::string &second,
                            const std::string &head = "") {
        const auto with = [&head](const std::string &text) {
            return kDeclarations + std::string("#line 1 \"lib/head.h\"\n") + head +
                   "\n#line 1 \"main.c\"\n" + text;
        };
        auto parsed = parse_text(
            {{first, with("double f(void);" + with_loop("sum += f();"))},
             {second, with(head.empty() ? "static double total; double f(void) { return ++total; }"
                                        : "double f(void) { return g(); }")}});
        return reasons(analyse(std::move(parsed), {}));
    };
    EXPECT_EQ(refused("main.c", "b.c"), "");
    EXPECT_NE(refused("a/util.c", "b/util.c").find("util.c: is the name of two sources"),
              std::string::npos);
    EXPECT_EQ(refused("main.c", "b.c",
                      "static const int three = 3; static int g(void) { return "
                      "three; }"),
              "");
    EXPECT_NE(refused("main.c", "b.c", "static int calls; static int g(void) { return ++calls; }")
                  .find("head.h:1: 'calls' is static and stands in a header"),
              std::string::npos);
    EXPECT_NE(refused("main.c", "b.c", "static int g(void) { static int calls; return ++calls; }")
                  .find("head.h:1: g() stands in a header and has static variables"),
              std::string::npos);
}

namespace {

/* A loop in main() around a call of solve(), whose loop has the safe point. @in_step: in front of
 * the call, @rest: behind it. */
std::string with_solver(const std::string &in_step, const std::string &rest = "",
                        const std::string &rounds = "20", const std::string &outside = "")
{
    return outside +
           "static double solve(double *u, int n) { double norm = 0, all = 0; int i, it;\n"
           "for (it = 0; it < " +
           rounds +
           "; it++) { norm = 0; for (i = 1; i < n - 1; i++) norm += u[i] = 0.5 * u[i] + 0.25 *"
           " (u[i - 1] + u[i + 1]);\n"
           "MPI_Allreduce(&norm, &all, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD); } return all; }\n"
           "int main(int argc, char **argv) { int step, n = 64; double u[64], sum = 0;\n"
           "MPI_Init(&argc, &argv); for (step = 0; step < 64; step++) u[step] = step;\n"
           "for (step = 0; step < 9; step++) {\n" +
           in_step + "\nsum += solve(u, 64);\n" + rest +
           "\n}\nprintf(\"%f %d\", sum, n); MPI_Finalize(); return 0; }\n";
}

/* FILE:LINE of the loop that has the safe point. */
std::string chosen_in(const std::string &text)
{
    const auto found = analysed(text);
    EXPECT_TRUE(found.is_done()) << reasons(found);
    return found.chosen ? found.chosen->place : "";
}

} // namespace

/* A successor runs the first step again until it comes to the inner loop. */
TEST(ObstaclesTest, WhatALoopAroundTheSafePointWritesFirst)
{
    const std::string write = "{ FILE *f = fopen(\"o\", \"a\"); fclose(f); }";
    EXPECT_EQ(chosen_in(with_solver("sum += n;")), "small.c:2");
    EXPECT_EQ(chosen_in(with_solver(write)), "small.c:6");
    EXPECT_EQ(chosen_in(with_solver("dump();", "", "20",
                                    "static void dump(void) { FILE *f = fopen(\"o\", \"w\");"
                                    " fclose(f); }\n")),
              "small.c:7");
    EXPECT_EQ(chosen_in(with_solver("", write)), "small.c:2");
    /* Where the inner loop may have no round, what is behind it comes before the safe point, too.
     */
    EXPECT_EQ(chosen_in(with_solver("", write, "n")), "small.c:6");
    EXPECT_EQ(chosen_in(with_solver("MPI_Win w; MPI_Win_create(u, 8, 8, 0, MPI_COMM_WORLD, &w);"
                                    "MPI_Win_free(&w);")),
              "small.c:6");
}

TEST(ObstaclesTest, AFunctionThatWritesBeforeTheLoopAndInIt)
{
    expect_refused(
        with_loop("dump();", "dump();",
                  "static void dump(void) { FILE *f = fopen(\"o\", \"a\"); fclose(f); }"),
        "would overwrite it");
}

TEST(ObstaclesTest, ArraysWhoseLengthIsAnotherOneEachTime)
{
    const auto solver = [](const std::string &length) {
        return "static double solve(int n) { double u[n], norm, all = 0; int i, it;\n"
               "for (i = 0; i < n; i++) u[i] = i;\n"
               "for (it = 0; it < 20; it++) { norm = 0; for (i = 0; i < n; i++) norm += u[i] *= "
               ".5;\n"
               "MPI_Allreduce(&norm, &all, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD); } return all + u[0]; "
               "}\n"
               "int main(int argc, char **argv) { int step, m = argc + 9; double sum = 0;\n"
               "MPI_Init(&argc, &argv); for (step = 0; step < 9; step++) sum += solve(" +
               length + ");\nprintf(\"%f\", sum); MPI_Finalize(); return 0; }\n";
    };
    expect_done(solver("m"));
    expect_refused(solver("m + step"), "may have another length each time");
    expect_refused(with_loop("sum += u[step % 4];",
                             "int n = 4 + time(NULL) % 3; double u[n];"
                             " u[0] = u[1] = u[2] = u[3] = 1;",
                             "long time(long *);"),
                   "may have another length in a successor");
}

TEST(ObstaclesTest, AddressesInDatatypes)
{
    const std::string outside = "#define MPI_BOTTOM ((void *)0)\n"
                                "int MPI_Get_address(const void *, long *);\n"
                                "int MPI_Type_create_hindexed(int, int *, long *, MPI_Datatype,"
                                " MPI_Datatype *);\n",
                      make = "double x = 1, y = 0; long at; int one = 1; MPI_Datatype t;"
                             "MPI_Get_address(&x, &at);"
                             "MPI_Type_create_hindexed(1, &one, &at, MPI_DOUBLE, &t);";
    expect_refused(
        with_loop("MPI_Bcast(MPI_BOTTOM, 1, t, 0, MPI_COMM_WORLD); x = sum;", make, outside),
        "MPI_Bcast() with MPI_BOTTOM");
    expect_done(with_loop("MPI_Reduce(&x, rank ? NULL : &y, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);"
                          "MPI_Bcast(&x, 1, t, 0, MPI_COMM_WORLD); x = sum + y;",
                          make, outside));
}

TEST(ObstaclesTest, HandlesThatAreKeptAsNumbers)
{
    expect_refused(with_loop("MPI_Barrier(h);", "MPI_Comm c; MPI_Comm_dup(MPI_COMM_WORLD, &c);"
                                                "int h = c;"),
                   "a handle of MPI is kept as a number");
    expect_refused(with_loop("own(c);", "MPI_Comm c; MPI_Comm_dup(MPI_COMM_WORLD, &c);",
                             "static void own(int h) { MPI_Barrier(h); }"),
                   "a handle of MPI is kept as a number");
    expect_done(with_loop("own(c);", "MPI_Comm c; MPI_Comm_dup(MPI_COMM_WORLD, &c);",
                          "static void own(MPI_Comm h) { MPI_Barrier(h); }"));
}

TEST(ObstaclesTest, CompoundLiteralsThatArePointedTo)
{
    const std::string type = "struct pair { int n; double x; };";
    expect_refused(with_loop("sum += p->x++;", "struct pair *p = &(struct pair){1, 2};", type),
                   "the address of a compound literal is kept");
    expect_refused(with_loop("sum += p[1]++;", "double *p; p = (double[]){1, 2};"),
                   "the address of a compound literal is kept");
    expect_done(with_loop("struct pair *p = &(struct pair){1, 2}; sum += p->x;",
                          "struct pair q = (struct pair){1, 2}; sum += q.x;", type));
}

} // namespace zc::instrument
