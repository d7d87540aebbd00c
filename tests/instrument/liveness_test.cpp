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
        "for (it = 0; it < 20; it++) { MPI_Allreduce(&own, &all, 1, 0, 0, MPI_COMM_WORLD);\n"
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

TEST(LivenessTest, HandlesAreMadeByTheInitialisation)
{
    const auto found = analysed(
        with_loop("MPI_Barrier(own);", "MPI_Comm own; MPI_Comm_dup(MPI_COMM_WORLD, &own);"));
    EXPECT_TRUE(found.is_done()) << reasons(found);
    EXPECT_EQ(names(found), (strings{"main.step", "main.sum"}));
    ASSERT_EQ(found.live.left_out.size(), 1u);
    EXPECT_NE(found.live.left_out[0].reason.find("'own'"), std::string::npos);
}

} // namespace zc::instrument
