/* SPDX-License-Identifier: BSD-3-Clause */
#include "report.h"
#include "small_source.h"

namespace zc::instrument {

namespace {

const std::string kProgram =
    "static double a[100];\n"
    "static void sweep(void) { int i;\n"
    "for (i = 1; i < 99; i++)\n"
    "a[i] = (a[i - 1] + a[i + 1] + a[i] * a[i]) / 3; }\n"
    "int main(int argc, char **argv) { int step, k; double r, all;\n"
    "MPI_Init(&argc, &argv);\n"
    "for (step = 0; step < 9; step++) {\n"
    "for (k = 0; k < 5; k++) {\n"
    "sweep(); r = a[5]; MPI_Allreduce(&r, &all, 1, 0, 0, MPI_COMM_WORLD); a[0] = all; }\n"
    "for (k = 0; k < 2; k++)\n"
    "MPI_Barrier(MPI_COMM_WORLD);\n"
    "}\n"
    "printf(\"%f\", a[3]); MPI_Finalize(); return 0; }\n";

} // namespace

TEST(LoopsTest, TheInnermostOfSufficientCost)
{
    const auto found = analysed(kProgram);
    ASSERT_TRUE(found.is_done()) << reasons(found);
    EXPECT_EQ(found.chosen->place, "small.c:8");
    EXPECT_EQ(found.chosen->depth, 1u);
}

TEST(LoopsTest, CostsAreOrdered)
{
    const auto found = analysed(kProgram);
    std::map<std::string, double> costs;
    for (const auto &one : found.loops)
        costs[one.place] = one.cost;
    EXPECT_GT(costs["small.c:7"], 0.9);
    EXPECT_GT(costs["small.c:8"], 0.8);
    EXPECT_LT(costs["small.c:10"], 0.01);
}

TEST(LoopsTest, ALoopCanBeNamed)
{
    const auto found = analysed(kProgram, {.loop = "small.c:7", .threshold = 0.1});
    ASSERT_TRUE(found.is_done()) << reasons(found);
    EXPECT_EQ(found.chosen->place, "small.c:7");
    EXPECT_FALSE(analysed(kProgram, {.loop = "small.c:6", .threshold = 0.1}).is_done());
}

TEST(LoopsTest, OneWithoutCommunicationIsNotChosen)
{
    const auto found = analysed("static double a[9];\nint main(int argc, char **argv) { int i;\n"
                                "MPI_Init(&argc, &argv);\n"
                                "for (i = 0; i < 9; i++) a[i] = i;\nMPI_Finalize(); return 0; }\n");
    EXPECT_EQ(found.chosen, nullptr);
}

TEST(LoopsTest, OneThatCostsNothingIsNotChosenForOneThatIsRefused)
{
    const auto found =
        analysed("static double a[100];\n"
                 "int main(int argc, char **argv) { int step, i, rank; double r = 1;\n"
                 "MPI_Init(&argc, &argv); MPI_Comm_rank(MPI_COMM_WORLD, &rank);\n"
                 "for (i = 0; i < 3; i++) MPI_Bcast(&r, 1, 0, 0, MPI_COMM_WORLD);\n"
                 "for (step = rank; step < 9; step++) { MPI_Barrier(MPI_COMM_WORLD);\n"
                 "for (i = 1; i < 99; i++) a[i] = (a[i - 1] + a[i + 1] + a[i] * a[i]) / 3 + r; }\n"
                 "printf(\"%f\", a[3]); MPI_Finalize(); return 0; }\n");
    EXPECT_EQ(found.chosen, nullptr);
    const auto text = report_text(found);
    const auto costly = text.find("loop small.c:5"), cheap = text.find("loop small.c:4");
    EXPECT_LT(costly, cheap) << text;
    EXPECT_NE(text.find("it costs less than 0.100 of the program", cheap), std::string::npos)
        << text;
}

TEST(LoopsTest, WhatAMacroRunsOnceIsNoLoop)
{
    const auto found =
        analysed("#define CHECK(call) do { if (call) MPI_Abort(MPI_COMM_WORLD, 1); } while (0)\n" +
                 with_loop("CHECK(MPI_Barrier(MPI_COMM_WORLD)); sum += step;"));
    EXPECT_EQ(found.loops.size(), 1u);
    ASSERT_TRUE(found.is_done()) << reasons(found);
    EXPECT_EQ(found.chosen->depth, 0u);
}

TEST(LoopsTest, APointerCallsFunctionsOfItsTypeOnly)
{
    const std::string text = "static double run(int steps) { double sum = 0, all; int i;\n"
                             "for (i = 0; i < steps; i++) { MPI_Allreduce(&sum, &all, 1, 0, 0, 0); "
                             "sum += all; } return sum; }\n"
                             "int main(int argc, char **argv) { double (*f)(double) = sqrt;\n"
                             "MPI_Init(&argc, &argv); printf(\"%f\", f(2.0) + run(9));\n"
                             "MPI_Finalize(); return 0; }\n";
    expect_done(text);
    auto same = text;
    same.replace(same.find("(*f)(double)"), 12, "(*f)(int)");
    expect_refused(same, "run() is called at small.c:4 and at small.c:4");
}

/* The macro around the call is no loop, and makes what it calls no more than it is. */
TEST(LoopsTest, AMacroAroundTheCallOfTheLoopsFunction)
{
    expect_done("#define CHECK(c) do { int e = (c); if (e) MPI_Abort(0, e); } while (0)\n"
                "static double s = 1, all;\n"
                "static int solve(void) { int it; for (it = 0; it < 20; it++) { s = s * .5 + it;"
                " MPI_Allreduce(&s, &all, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD); } return 0; }\n"
                "int main(int argc, char **argv) { MPI_Init(&argc, &argv); CHECK(solve());\n"
                "printf(\"%f\", all); MPI_Finalize(); return 0; }\n");
}

} // namespace zc::instrument
