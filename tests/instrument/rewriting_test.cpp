/* SPDX-License-Identifier: BSD-3-Clause */
#include "small_source.h"

namespace zc::instrument {

namespace {

std::string text_of(const analysis &found)
{
    EXPECT_TRUE(found.is_done()) << reasons(found);
    return found.result.sources.empty() ? "" : found.result.sources.begin()->second;
}

void expect_in(const std::string &part, const std::string &text)
{
    EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in:\n" << text;
}

const std::string kEnd = "MPI_Finalize(); return 0; }\n";

} // namespace

TEST(RewritingTest, ASafePointAtTheHeadOfTheBody)
{
    const auto text = text_of(analysed(with_loop("sum += 1;")));
    expect_in("{\n    /* zcm-instrument */\n    zcm_state_local(0, &step, sizeof step);\n", text);
    expect_in("    zcm_state_ready();\n    if (zcm_safe_point() != 0)\n"
              "        MPI_Abort(MPI_COMM_WORLD, 1);\n",
              text);
    expect_in("zcm_state_init(MPI_Init(&argc, &argv));", text);
    expect_in("#include \"zcm_state.h\"", text);
}

TEST(RewritingTest, ABodyWithoutBraces)
{
    const auto text = text_of(analysed(
        "int main(int argc, char **argv) { int i; double a = 1, b = 0;\nMPI_Init(&argc, &argv);\n"
        "for (i = 0; i < 5; i++)\n    MPI_Allreduce(&a, &b, 1, 0, 0, MPI_COMM_WORLD);\n" +
        kEnd));
    expect_in("    {\n    /* zcm-instrument */", text);
    expect_in("MPI_Allreduce(&a, &b, 1, 0, 0, MPI_COMM_WORLD);\n}", text);
}

TEST(RewritingTest, TheHeapIsFollowed)
{
    const auto text = text_of(analysed(with_loop("sum += p[step];", "double *p = NEW(800);",
                                                 "#define NEW(n) malloc(n)", "free(p);")));
    expect_in("#define NEW(n) zcm_state_malloc(n)", text);
    expect_in("zcm_state_free(p);", text);
}

TEST(RewritingTest, FramesAboveAndConst)
{
    const auto text = text_of(analysed(
        "static double work(double from) { int it; const double own = from * 2; double mine = own, "
        "all;\n"
        "for (it = 0; it < 20; it++) { MPI_Allreduce(&mine, &all, 1, 0, 0, MPI_COMM_WORLD);\n"
        "mine = own + all * it; } return mine; }\n"
        "int main(int argc, char **argv) { int k; double sum = 1;\nMPI_Init(&argc, &argv);\n"
        "for (k = 0; k < 5; k++)\n    sum += work(sum);\nprintf(\"%f\", sum);\n" +
            kEnd,
        {.loop = "small.c:2", .threshold = 0.1}));
    expect_in("{ /* zcm-instrument */\n", text);
    expect_in("&k, sizeof k);", text);
    expect_in("&sum, sizeof sum);", text);
    expect_in(" double own = from * 2;", text);
    EXPECT_EQ(text.find("const double own"), std::string::npos) << text;
}

TEST(RewritingTest, StaticDataIsNamedInItsSource)
{
    const auto found = analysed(with_loop("sum += hidden++;", "", "static int hidden;"));
    const auto text = text_of(found);
    expect_in("void zcm_state_of_small_c(void)\n{\n    zcm_state_local(", text);
    expect_in("    zcm_state_of_small_c();\n", found.result.state_c);
    expect_in("{\"small.c:hidden\", ", found.result.state_c);
}

TEST(RewritingTest, StaticVariablesOfFunctionsAreMovedOut)
{
    const auto text = text_of(analysed(
        with_loop("sum += next();", "",
                  "static int next(void) { static int n[2] = {3, 4}; return ++n[0] + n[1]; }")));
    expect_in(
        "static int next_n[2] = {3, 4}; /* zcm-instrument */\n\nstatic int next(void) { ; return "
        "++next_n[0] + next_n[1]; }",
        text);
    expect_in("&next_n, sizeof next_n);", text);
}

TEST(RewritingTest, WhatHasNoValueYetBeginsAsZero)
{
    const auto text = text_of(
        analysed(with_loop("if (step > 3) sum += later[0] + *p; else later[0] = step; p = &sum;",
                           "double later[2], *p;")));
    expect_in("double later[2] = {0}, *p = 0;", text);
}

TEST(RewritingTest, TwoVariablesOfOneName)
{
    expect_refused("int main(int argc, char **argv) { int i = 3; double a = 1, b = 0;\n"
                   "MPI_Init(&argc, &argv);\n"
                   "{ int k = i; for (int i = 0; i < 5; i++) {\n"
                   "MPI_Allreduce(&a, &b, 1, 0, 0, MPI_COMM_WORLD); a += b + k; } }\n"
                   "printf(\"%d %f\", i, a);\n" +
                       kEnd,
                   "hides another variable of this name");
}

/* It is saved, and so restored, where a successor's initialisation would give it another value. */
TEST(RewritingTest, WhatIsConstButOtherInASuccessorIsSaved)
{
    const std::string outside =
        "long time(long *); int getpid(void); struct c { long seed; };\n"
        "static void go(const long seed) { double s = 0, a = 0; for (int i = 0; i < 100; i++) {"
        " s += seed % 7; MPI_Allreduce(&s, &a, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD); s = a; }"
        " printf(\"%g\", s); }\n";
    for (const std::string declared :
         {"const long x = time(NULL);", "const int x = getpid();", "long const x = time(NULL) + 1;",
          "const long x[2] = {time(NULL), 1};", "double *const x = malloc(80);",
          "const double *const x = calloc(8, 10);", "const struct c x = {time(NULL)};"}) {
        const auto found = analysed(with_loop(
            declared.find("x[") != std::string::npos || declared.find('*') != std::string::npos
                ? "sum += x[0];"
            : declared.find("struct") != std::string::npos ? "sum += x.seed;"
                                                           : "sum += x;",
            declared, outside));
        EXPECT_TRUE(found.is_done()) << declared << reasons(found);
        EXPECT_EQ(found.live.roots.size(), 3u) << declared;
        const auto text = text_of(found);
        EXPECT_EQ(text.find(declared), std::string::npos) << declared << text;
    }
    expect_in(
        "const double * x = zcm_state_calloc",
        text_of(analysed(with_loop("sum += x[0];", "const double *const x = calloc(8, 10);"))));
    const auto found =
        analysed(outside + "int main(int argc, char **argv) { MPI_Init(&argc, &argv);"
                           " go(time(NULL)); MPI_Finalize(); return 0; }");
    EXPECT_TRUE(found.is_done()) << reasons(found);
    expect_in("go( long seed)", text_of(found));
    for (const std::string declared :
         {"const int x = argc;", "const double x = 3 * sum;", "char *const x = argv[0];",
          "static const double x = 3;", "static const char *const x = \"a\";"})
        EXPECT_EQ(
            analysed(with_loop(std::string("sum += ") +
                                   (declared.find("*const") != std::string::npos ? "*x;" : "x;"),
                               declared, outside))
                .live.roots.size(),
            2u)
            << declared;
    expect_refused(
        with_loop("sum += x;", "typedef const long fixed; fixed x = time(NULL);", outside),
        "'x' is const, and may have another value than a successor gives it");
    const std::string streams = outside + "extern FILE *stdout, *stderr;";
    expect_refused(with_loop("fprintf(x, \"%d\", step);",
                             "FILE *const x = time(NULL) % 2 ? stdout : stderr;", streams),
                   "may be another one in a successor");
}

/* Where the call is not a statement of its own, the variables are named in the expression: they may
 * be declared in the same statement, and a label may lead past the line before. */
TEST(RewritingTest, CallsOnTheWayWithinStatements)
{
    const auto program = [](const std::string &call) {
        return "#define CHECK(c) do { int e = (c); if (e) MPI_Abort(0, e); } while (0)\n"
               "static double s, all, total;\n"
               "static int solve(int i) { int it;\n"
               "for (it = 0; it < 20; it++) { s += it + i;\n"
               "MPI_Allreduce(&s, &all, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD); total += all; }"
               " return 0; }\n"
               "int main(int argc, char **argv) { int x = 0;\nMPI_Init(&argc, &argv);\n" +
               call + "\nprintf(\"%f %d\", total, x);\n" + kEnd;
    };
    const std::string named = "(/* zcm-instrument */ zcm_state_local(0, &x, sizeof x), ";
    expect_in("!(/* zcm-instrument */ zcm_state_local(0, &i, sizeof i), "
              "zcm_state_local(1, &x, sizeof x), solve(i))",
              text_of(analysed(program("for (int i = 0; i < 5 && !solve(i); i++) x += i;"))));
    expect_in("case 1: " + named + "solve(3)); break;",
              text_of(analysed(program("switch (argc) { case 1: solve(3); break; }"))));
    expect_in(
        "else if (" + named + "solve(3))) x = 1;",
        text_of(analysed(program("if (argc > 3) x = 2; else if (solve(3)) x = 1; else x++;"))));
    expect_in("zcm_state_local(1, &y, sizeof y), solve(y))",
              text_of(analysed(program("for (x = 0; x < 5; x++) { int y = x, "
                                       "t = solve(y); x += t + y; }"))));
    expect_in("CHECK(" + named + "solve(3)));", text_of(analysed(program("CHECK(solve(3));"))));
}

TEST(RewritingTest, ArgumentsOfMainMayBePointedTo)
{
    const std::string before = "const char *name = argc > 1 ? argv[1] : \"none\";";
    expect_in("zcm_state_arguments(argv);",
              text_of(analysed(with_loop("sum += 1;", before, "", "printf(\"%s\", name);"))));
    EXPECT_EQ(text_of(analysed(with_loop("sum += 1;", before))).find("zcm_state_arguments"),
              std::string::npos);
}

/* No pointer need lead to it, and it may have been filled with what a successor has not. */
TEST(RewritingTest, BuffersOfPersistentRequestsAreKept)
{
    const auto text = text_of(
        analysed(with_loop("MPI_Start(&q); MPI_Start(&r); MPI_Wait(&q, NULL); MPI_Wait(&r, NULL);",
                           "MPI_Request q, r; double in[4], *out = malloc(32); out[0] = rand();"
                           "MPI_Recv_init(in, 4, MPI_DOUBLE, 0, 5, MPI_COMM_WORLD, &q);"
                           "MPI_Send_init(out + 1, 4, MPI_DOUBLE, 0, 5, MPI_COMM_WORLD, &r);")));
    expect_in("MPI_Send_init(zcm_state_buffer(out + 1), 4,", text);
    expect_in("MPI_Recv_init(in, 4,", text);
}

} // namespace zc::instrument
