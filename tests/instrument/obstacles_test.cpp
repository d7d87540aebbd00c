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

} // namespace zc::instrument
