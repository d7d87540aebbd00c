/* SPDX-License-Identifier: BSD-3-Clause */
#include "small_source.h"

namespace zc::instrument {

using strings = std::vector<std::string>;

TEST(LivenessTest, WhatIsGivenAValueFirstIsNotLive)
{
    EXPECT_EQ(names(analysed(with_loop("double t = sum; all = 2 * t; sum = all;"))),
              (strings{"main.step", "main.sum"}));
}

TEST(LivenessTest, WhatMpiWritesAsAWholeIsNotLive)
{
    const auto found = analysed(with_loop("", "double m;", "", "m = rank; sum += m;"));
    EXPECT_EQ(names(found), (strings{"main.rank", "main.step", "main.sum"}));
}

/* Each call keeps x from one step to the next, and nothing else reads it: it is live only if the
 * buffer to receive in counts as read. */
TEST(LivenessTest, WhatIsReducedInPlaceIsReadFirst)
{
    const strings with_x{"main.step", "main.sum", "main.x"};
    const std::string calls[] = {
        "MPI_Allreduce(MPI_IN_PLACE, &x, 1, 0, 0, MPI_COMM_WORLD);",
        "MPI_Allreduce((const char *)MPI_IN_PLACE, (&x), 1, 0, 0, MPI_COMM_WORLD);",
        "MPI_Reduce(step ? &other : MPI_IN_PLACE, &x, 1, 0, 0, 0, MPI_COMM_WORLD);",
        "MPI_Scan(MPI_IN_PLACE, &x, 1, 0, 0, MPI_COMM_WORLD);",
        "MPI_Allgather(MPI_IN_PLACE, 0, 0, &x, 1, 0, MPI_COMM_WORLD);",
        "MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, 0, &x, NULL, NULL, 0, MPI_COMM_WORLD);",
        "MPI_Request r; MPI_Iallreduce(MPI_IN_PLACE, &x, 1, 0, 0, MPI_COMM_WORLD, &r); "
        "MPI_Wait(&r, NULL);",
    };
    for (const auto &call : calls)
        EXPECT_EQ(names(analysed(with_loop(call, "double x = 1, other = 2; other = 3;"))),
                  call.find("&other") == std::string::npos
                      ? with_x
                      : (strings{"main.other", "main.step", "main.sum", "main.x"}))
            << call;
}

TEST(LivenessTest, APointerIsInPlaceOnlyIfTheProgramKeepsThat)
{
    const std::string call = "MPI_Allreduce(from, &x, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD); sum += x;",
                      before = "double x = 1, *from = malloc(8);";
    EXPECT_EQ(names(analysed(with_loop(call, before))),
              (strings{"main.from", "main.step", "main.sum"}));
    EXPECT_EQ(
        names(analysed(with_loop(call, before + "if (argc > 1) from = argc > 2 ? MPI_IN_PLACE "
                                                ": NULL;"))),
        (strings{"main.from", "main.step", "main.sum", "main.x"}));
    const std::string outside = "static void total(const void *of, double *to) "
                                "{ MPI_Allreduce(of, to, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD); }\n"
                                "static const void *const kept = MPI_IN_PLACE;\n";
    EXPECT_EQ(names(analysed(with_loop("total(MPI_IN_PLACE, &x);", "double x = 1;",
                                       outside.substr(0, outside.find("static const"))))),
              (strings{"main.step", "main.sum", "main.x"}));
    EXPECT_EQ(names(analysed(with_loop("total(kept, &x);", "double x = 1;", outside))),
              (strings{"main.step", "main.sum", "main.x"}));
}

TEST(LivenessTest, WhatIsScatteredInPlaceIsOnlyRead)
{
    EXPECT_EQ(
        names(analysed(with_loop("MPI_Scatter(all_parts, 1, 0, rank ? &x : MPI_IN_PLACE, 1, 0, 0, "
                                 "MPI_COMM_WORLD);",
                                 "double all_parts[64], x; all_parts[0] = 1;"))),
        (strings{"main.all_parts", "main.rank", "main.step", "main.sum"}));
}

/* All of x, or its other half, is what it was. */
TEST(LivenessTest, WhatIsWrittenInPartIsLive)
{
    for (const std::string write :
         {"double x = 1, y = 2;: MPI_Allreduce(&sum, step & 1 ? &x : &y, 1, MPI_DOUBLE, 0, "
          "MPI_COMM_WORLD);",
          "double x = 1, y = 2;: *(step & 1 ? &x : &y) = sum;", "double x = 1;: *(int *)&x = step;",
          "double x = 1;: *(int *)(void *)&x = step;",
          "struct { int a, b; } x = {1, 2};: *(int *)&x = step;",
          "long x = 1; int one = 1;: MPI_Allreduce(&one, (int *)&x, 1, MPI_INT, 0, "
          "MPI_COMM_WORLD);",
          "double x = 1; float one = 1;: MPI_Allreduce(&one, &x, 1, MPI_FLOAT, 0, "
          "MPI_COMM_WORLD);",
          "double x = 1; int k = argc;: MPI_Allreduce(&sum, &x, k, MPI_DOUBLE, 0, "
          "MPI_COMM_WORLD);",
          "double x = 1;: MPI_Allreduce(&sum, &x, 0, MPI_DOUBLE, 0, MPI_COMM_WORLD);"}) {
        const auto end = write.find(':');
        const auto found = names(analysed(with_loop(
            write.substr(end + 1) + "sum += *(volatile char *)&x;", write.substr(0, end))));
        EXPECT_EQ(std::count(found.begin(), found.end(), "main.x"), 1) << write;
    }
    for (const std::string write :
         {"*&x = sum;", "*(double *)(void *)&x = sum;",
          "MPI_Allreduce(&sum, &x, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);",
          "MPI_Allreduce(&sum, (&x), 2 - 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);"})
        EXPECT_EQ(names(analysed(with_loop(write + std::string("sum += x;"), "double x = 1;"))),
                  (strings{"main.step", "main.sum"}))
            << write;
}

TEST(LivenessTest, OneOfTwoPathsIsEnough)
{
    const auto found =
        analysed(with_loop("if (step % 2) kept = step; sum += kept;", "int kept = 0;"));
    EXPECT_EQ(names(found), (strings{"main.kept", "main.step", "main.sum"}));
}

TEST(LivenessTest, FunctionsReadGlobals)
{
    const auto found = analysed(with_loop("sum += f();", "unused = 3; written = 4;",
                                          "static double used = 1; static int unused, written; "
                                          "static double g(void) { return used; }\n"
                                          "static double f(void) { written = 1; return g(); }"));
    EXPECT_EQ(names(found), (strings{"main.step", "main.sum", "small.c:used"}));
}

TEST(LivenessTest, ArraysAreLiveWhileAnElementIsRead)
{
    const auto found = analysed(with_loop("table[step % 8] = step; sum += table[3];",
                                          "double table[8], only[8]; only[0] = 1;"));
    EXPECT_EQ(names(found), (strings{"main.step", "main.sum", "main.table"}));
}

TEST(LivenessTest, WhatAPointerLeadsToIsLive)
{
    const auto found = analysed(with_loop("*p += 1; sum += *p;", "double x = 1, *p = &x;"));
    EXPECT_EQ(names(found), (strings{"main.p", "main.step", "main.sum", "main.x"}));
}

TEST(LivenessTest, WhatAPointerLeadsToThatABlockGivesIsLive)
{
    const auto found =
        analysed(with_loop("*p += 1; sum += *p;", "double x = 1, *p = ({ step = 0; &x; });"));
    EXPECT_EQ(names(found), (strings{"main.p", "main.step", "main.sum", "main.x"}));
}

TEST(LivenessTest, AnArgumentThatIsOnlyLookedAtDoesNotEscape)
{
    const auto found = analysed(
        with_loop("double t[4]; fill(t); sum += t[1];", "",
                  "static void fill(double *to) { int i; for (i = 0; i < 4; i++) to[i] = i; }"));
    EXPECT_EQ(names(found), (strings{"main.step", "main.sum"}));
}

TEST(LivenessTest, FramesAboveKeepWhatTheyNeedLater)
{
    const std::string text =
        "static double work(double from) { int it; double own = from, all;\n"
        "for (it = 0; it < 20; it++) { MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, 0, "
        "MPI_COMM_WORLD);\n"
        "own = own + all * it + from; } return own; }\n"
        "int main(int argc, char **argv) { int k, dead = 3; double sum = dead, r;\n"
        "MPI_Init(&argc, &argv);\n"
        "for (k = 0; k < 5; k++) { r = work(sum); sum += r; }\n"
        "printf(\"%f\", sum); MPI_Finalize(); return 0; }\n";
    const auto found = analysed(text, {.loop = "small.c:2", .threshold = 0.1});
    ASSERT_TRUE(found.is_done()) << reasons(found);
    EXPECT_EQ(names(found), (strings{"main.k", "main.sum", "small.c:work.from", "small.c:work.it",
                                     "small.c:work.own"}));
}

TEST(LivenessTest, WhatAFunctionReadsThatTheLibraryCallsIsLive)
{
    const std::string outside =
        "void qsort(void *, size_t, size_t, int (*)(const void *, const void *));\n"
        "int MPI_Op_create(void (*)(void *, void *, int *, MPI_Datatype *), int, MPI_Op *);\n"
        "static int sign = 1; static int by(const void *a, const void *b)"
        " { return sign * (*(int *)a - *(int *)b); }\n"
        "static void add(void *a, void *b, int *n, MPI_Datatype *t) { *(int *)b += sign; }\n";
    const std::string set = "if (step == 3) sign = -1;";
    for (const std::string how : {"by", "&by", "c"})
        EXPECT_EQ(names(analysed(with_loop("int a[2] = {step, 3}; qsort(a, 2, 4, " + how +
                                               "); sum += a[0];" + set,
                                           "int (*c)(const void *, const void *) = by;", outside))),
                  how == "c" ? (strings{"main.c", "main.step", "main.sum", "small.c:sign"})
                             : (strings{"main.step", "main.sum", "small.c:sign"}))
            << how;
    EXPECT_EQ(names(analysed(with_loop("int x = step, y; MPI_Allreduce(&x, &y, 1, MPI_INT, o, "
                                       "MPI_COMM_WORLD); sum += y;" +
                                           set,
                                       "MPI_Op o; MPI_Op_create(add, 1, &o);", outside))),
              (strings{"main.step", "main.sum", "small.c:sign"}));
}

TEST(LivenessTest, HandlesAreMadeByTheInitialisation)
{
    const auto found = analysed(
        with_loop("MPI_Barrier(own);", "MPI_Comm own; MPI_Comm_dup(MPI_COMM_WORLD, &own);"));
    EXPECT_TRUE(found.is_done()) << reasons(found);
    EXPECT_EQ(names(found), (strings{"main.step", "main.sum"}));
    ASSERT_EQ(found.live.left_out.size(), 1u);
    EXPECT_NE(found.live.left_out[0].reason.find("'own'"), std::string::npos);
}

namespace {

bool is_registered(const analysis &found, const std::string &name)
{
    EXPECT_TRUE(found.is_done()) << reasons(found);
    const auto all = names(found);
    return std::find(all.begin(), all.end(), name) != all.end();
}

} // namespace

/* What the function with the safe point reads by its parameter is named nowhere else. */
TEST(LivenessTest, WhatTheFunctionsAboveAreHanded)
{
    const auto program = [](const std::string &outside, const std::string &inside,
                            const std::string &argument) {
        return outside +
               "struct part { double u[8]; };\n"
               "static double solve(const double *u) { double norm, all, sum = 0; int it;\n"
               "for (it = 0; it < 20; it++) { norm = u[it % 8];\n"
               "MPI_Allreduce(&norm, &all, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD); sum += all; }"
               " return sum; }\n"
               "int main(int argc, char **argv) { int i; double sum; " +
               inside + "\nMPI_Init(&argc, &argv); for (i = 0; i < 8; i++) " + argument +
               "[i] = i; sum = solve(" + argument +
               ");\nprintf(\"%f\", sum); MPI_Finalize(); return 0; }\n";
    };
    EXPECT_TRUE(is_registered(analysed(program("static double r[8];\n", "", "r")), "small.c:r"));
    EXPECT_TRUE(is_registered(analysed(program("", "double r[8];", "r")), "main.r"));
    EXPECT_TRUE(is_registered(analysed(program("", "struct part p;", "p.u")), "main.p"));
    EXPECT_TRUE(is_registered(analysed(program("", "double r[3][8];", "r[1]")), "main.r"));
}

TEST(LivenessTest, WhatAFunctionOfTheLibraryReturnsLeadsToItsArgument)
{
    const std::string outside = "static double kept[4];\n"
                                "double strtod(const char *, char **);\nstatic char text[8];\n";
    EXPECT_TRUE(is_registered(
        analysed(with_loop("sum += w[1]++;",
                           "double from[4] = {1, 2, 3, 4}; double *w = memcpy(kept, from, 32);",
                           outside)),
        "small.c:kept"));
    EXPECT_TRUE(is_registered(
        analysed(with_loop("sum += end[0]++;", "char *end; sum = strtod(text, &end);", outside)),
        "small.c:text"));
    EXPECT_FALSE(is_registered(
        analysed(with_loop("sum += 1;", "double from[4] = {1}; memcpy(kept, from, 32);", outside)),
        "small.c:kept"));
}

TEST(LivenessTest, FunctionsWithAnyNumberOfArgumentsBehindPointers)
{
    const std::string outside = "static int lines; static void say(const char *f, ...) {"
                                " printf(\"%d %s\", lines++, f); }\n"
                                "struct log { void (*say)(const char *, ...); };\n";
    EXPECT_TRUE(is_registered(
        analysed(with_loop("l.say(\"at %d\", step);", "struct log l = {say};", outside)),
        "small.c:lines"));
}

} // namespace zc::instrument
