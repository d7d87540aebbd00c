/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "analysis.h"
#include "parsing.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <stdexcept>

namespace zc::instrument {

/* Of mpi.h and the C library, what the sources of these tests use. */
inline const char kDeclarations[] = R"(
typedef int MPI_Comm; typedef int MPI_Datatype; typedef int MPI_Op; typedef int MPI_Request;
typedef int MPI_Win; typedef int MPI_Info; typedef struct { int x; } MPI_Status;
typedef unsigned long size_t; typedef struct _IO_FILE FILE;
#define MPI_COMM_WORLD ((MPI_Comm)0x44000000)
#define MPI_BYTE ((MPI_Datatype)0x4c00010d)
#define MPI_INT ((MPI_Datatype)0x4c000405)
#define MPI_FLOAT ((MPI_Datatype)0x4c00040a)
#define MPI_DOUBLE ((MPI_Datatype)0x4c00080b)
#define NULL ((void *)0)
#define MPI_IN_PLACE ((void *)-1)
int MPI_Init(int *, char ***); int MPI_Finalize(void);
int MPI_Comm_rank(MPI_Comm, int *); int MPI_Comm_size(MPI_Comm, int *);
int MPI_Comm_dup(MPI_Comm, MPI_Comm *); int MPI_Comm_split(MPI_Comm, int, int, MPI_Comm *);
int MPI_Send(const void *, int, MPI_Datatype, int, int, MPI_Comm);
int MPI_Recv(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status *);
int MPI_Isend(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
int MPI_Irecv(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
int MPI_Send_init(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
int MPI_Recv_init(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
int MPI_Start(MPI_Request *); int MPI_Wait(MPI_Request *, MPI_Status *);
int MPI_Waitall(int, MPI_Request *, MPI_Status *); int MPI_Test(MPI_Request *, int *, MPI_Status *);
int MPI_Bcast(void *, int, MPI_Datatype, int, MPI_Comm);
int MPI_Allreduce(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);
int MPI_Reduce(const void *, void *, int, MPI_Datatype, MPI_Op, int, MPI_Comm);
int MPI_Scan(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);
int MPI_Allgather(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm);
int MPI_Alltoallv(const void *, const int *, const int *, MPI_Datatype, void *, const int *,
                  const int *, MPI_Datatype, MPI_Comm);
int MPI_Scatter(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, int, MPI_Comm);
int MPI_Iallreduce(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Request *);
int MPI_Barrier(MPI_Comm); int MPI_Abort(MPI_Comm, int); double MPI_Wtime(void);
int MPI_Win_create(void *, long, int, MPI_Info, MPI_Comm, MPI_Win *); int MPI_Win_free(MPI_Win *);
void *malloc(size_t); void *calloc(size_t, size_t); void *realloc(void *, size_t); void free(void *);
int atoi(const char *); int printf(const char *, ...); int fprintf(FILE *, const char *, ...);
FILE *fopen(const char *, const char *); int fclose(FILE *); int rand(void); void srand(unsigned);
int setjmp(long *); void *memcpy(void *, const void *, size_t); double sqrt(double);
)";

/** A program of one source, analysed. */
inline analysis analysed(const std::string &text, const settings &how = {})
{
    auto parsed = parse_text({{"small.c", std::string(kDeclarations) + "#line 1\n" + text}});
    if (!parsed)
        throw std::runtime_error("it does not compile");
    return analyse(std::move(parsed), how);
}

/** main() with a loop of 100 steps that has @body, and @before in front of it. */
inline std::string with_loop(const std::string &body, const std::string &before = "",
                             const std::string &outside = "", const std::string &behind = "")
{
    return outside + "\nint main(int argc, char **argv) {\nint step, rank; double sum = 0, all;\n" +
           "MPI_Init(&argc, &argv); MPI_Comm_rank(MPI_COMM_WORLD, &rank);\n" + before +
           "\nfor (step = 0; step < 100; step++) {\n" + body +
           "\nMPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD); sum += all; }\n" +
           behind + "printf(\"%f\", sum); MPI_Finalize(); return 0; }\n";
}

inline std::vector<std::string> names(const analysis &found)
{
    std::vector<std::string> all;
    for (const auto &one : found.live.roots)
        all.push_back(one.name);
    std::sort(all.begin(), all.end());
    return all;
}

/** All reasons, of the program and of its loops, a line each. */
inline std::string reasons(const analysis &found)
{
    std::string text;
    for (const auto &one : found.refused)
        text += one.place + ": " + one.reason + "\n";
    for (const auto &loop : found.loops)
        for (const auto &one : loop.refused)
            text += one.place + ": " + one.reason + "\n";
    return text;
}

inline void expect_refused(const std::string &text, const std::string &why)
{
    const auto found = analysed(text);
    EXPECT_FALSE(found.is_done());
    EXPECT_NE(reasons(found).find(why), std::string::npos) << "'" << why << "' is not in:\n"
                                                           << reasons(found);
}

inline void expect_done(const std::string &text)
{
    const auto found = analysed(text);
    EXPECT_TRUE(found.is_done()) << reasons(found);
}

/** Done, with @why among what is assumed of the loop; strictly, refused for it. */
inline void expect_assumed(const std::string &text, const std::string &why)
{
    const auto found = analysed(text);
    ASSERT_TRUE(found.is_done()) << reasons(found);
    std::string all;
    for (const auto &one : found.chosen->assumed)
        all += one.place + ": " + one.reason + "\n";
    EXPECT_NE(all.find(why), std::string::npos) << "'" << why << "' is not in:\n" << all;
    settings strict;
    strict.is_strict = true;
    const auto refused = analysed(text, strict);
    EXPECT_FALSE(refused.is_done());
    EXPECT_NE(reasons(refused).find(why), std::string::npos) << reasons(refused);
}

/** Done, also strictly. */
inline void expect_decided(const std::string &text)
{
    settings strict;
    strict.is_strict = true;
    const auto found = analysed(text, strict);
    EXPECT_TRUE(found.is_done()) << reasons(found);
    for (const auto &one : found.loops)
        EXPECT_TRUE(one.assumed.empty()) << one.assumed.front().reason;
}

} // namespace zc::instrument
