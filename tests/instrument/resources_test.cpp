/* SPDX-License-Identifier: BSD-3-Clause */
#include "small_source.h"

namespace zc::instrument {

namespace {
const std::string kSend = "MPI_Isend(&sum, 1, 0, 0, 5, MPI_COMM_WORLD, &r);",
                  kReceive = "MPI_Irecv(&all, 1, 0, 0, 5, MPI_COMM_WORLD, &q);";
}

TEST(ResourcesTest, BlockingCallsAreClosed)
{
    expect_done(with_loop("MPI_Send(&sum, 1, 0, 0, 5, MPI_COMM_WORLD);"
                          "MPI_Recv(&all, 1, 0, 0, 5, MPI_COMM_WORLD, NULL);"));
}

TEST(ResourcesTest, ARequestThatIsWaitedForIsClosed)
{
    expect_done(with_loop("MPI_Request r, q;" + kReceive + kSend +
                          "MPI_Wait(&r, NULL); MPI_Wait(&q, NULL);"));
}

TEST(ResourcesTest, ARequestThatIsNot)
{
    expect_refused(with_loop(kReceive + kSend + "MPI_Wait(&r, NULL);", "MPI_Request r, q;"),
                   "a request may be active that MPI_Irecv() has made");
}

TEST(ResourcesTest, OnePathThatDoesNotWaitIsEnough)
{
    expect_refused(
        with_loop(kReceive + kSend + "MPI_Wait(&r, NULL); if (step % 2) MPI_Wait(&q, NULL);",
                  "MPI_Request r, q;"),
        "small.c:7: a request may be active");
}

TEST(ResourcesTest, WaitallClosesTheArray)
{
    const std::string two = "MPI_Irecv(&all, 1, 0, 0, 5, MPI_COMM_WORLD, &r[n++]);"
                            "MPI_Isend(&sum, 1, 0, 0, 5, MPI_COMM_WORLD, &r[n++]);";
    expect_done(with_loop("int n = 0; if (rank > 0) {" + two + "} MPI_Waitall(n, r, NULL);",
                          "MPI_Request r[2];"));
    expect_refused(with_loop("int n = 0; if (rank > 0) {" + two + "} MPI_Wait(&r[n - 1], NULL);",
                             "MPI_Request r[2];"),
                   "a request may be active");
}

TEST(ResourcesTest, FunctionsOpenAndClose)
{
    const std::string outside =
        "struct halo { MPI_Request r[2]; double in, out; };\n"
        "static void begin(struct halo *h) { MPI_Irecv(&h->in, 1, 0, 0, 5, MPI_COMM_WORLD, "
        "&h->r[0]);\n"
        "MPI_Isend(&h->out, 1, 0, 0, 5, MPI_COMM_WORLD, &h->r[1]); }\n"
        "static void end(struct halo *h) { MPI_Waitall(2, h->r, NULL); }\n"
        "static void end_of(MPI_Request *all) { MPI_Waitall(2, all, NULL); }";
    const std::string h = "struct halo h; h.in = h.out = 0;";
    expect_done(with_loop("begin(&h); sum += h.out; end(&h);", h, outside));
    expect_done(with_loop("begin(&h); sum += h.out; end_of(h.r);", h, outside));
    expect_refused(with_loop("begin(&h); sum += h.out; if (step > 50) end(&h);", h, outside),
                   "small.c:3: a request may be active that MPI_Isend() has made");
}

TEST(ResourcesTest, WhatATestHasCompletedIsNotDecided)
{
    expect_refused(with_loop("MPI_Request r, q; int flag; " + kReceive + kSend +
                             "MPI_Wait(&r, NULL); MPI_Test(&q, &flag, NULL);"),
                   "a request may be active that MPI_Irecv() has made");
}

TEST(ResourcesTest, APipelineIsRefused)
{
    expect_refused(with_loop("MPI_Wait(&q, NULL);" + kReceive, "MPI_Request q; " + kReceive),
                   "a request may be active");
}

TEST(ResourcesTest, FilesAndWindowsAreClosed)
{
    expect_refused(with_loop("fprintf(f, \"%d\", step);", "FILE *f = fopen(\"log\", \"r\");"),
                   "a file may be open");
    expect_done(with_loop("FILE *f = fopen(\"log\", \"a\"); fprintf(f, \"%d\", step); fclose(f);"));
    expect_refused(with_loop("", "MPI_Win w; MPI_Win_create(&sum, 8, 8, 0, MPI_COMM_WORLD, &w);"),
                   "a window may exist");
}

TEST(ResourcesTest, PersistentRequestsAreMadeByTheInitialisation)
{
    const std::string make =
        "MPI_Request r, q; MPI_Send_init(&sum, 1, 0, 0, 5, MPI_COMM_WORLD, &r);"
        "MPI_Recv_init(&all, 1, 0, 0, 5, MPI_COMM_WORLD, &q);";
    const std::string both = "MPI_Start(&q); MPI_Start(&r); MPI_Wait(&q, NULL);";
    expect_done(with_loop(both + "MPI_Wait(&r, NULL);", make));
    expect_refused(with_loop(both, make), "a request may be active that MPI_Start()");
    expect_refused(with_loop(make + both + "MPI_Wait(&r, NULL);"),
                   "MPI_Send_init() in the loop of the safe point");
}

/* One that a function of the program makes, or that is copied, is persistent, too: nothing
 * completes it, and no successor gets it back but by its initialisation. */
TEST(ResourcesTest, PersistentRequestsOfFunctionsAndCopies)
{
    const std::string outside =
        "static void make(double *o, double *i, MPI_Request *r) {\n"
        "MPI_Send_init(o, 1, MPI_DOUBLE, 0, 5, MPI_COMM_WORLD, &r[0]);\n"
        "MPI_Recv_init(i, 1, MPI_DOUBLE, 0, 5, MPI_COMM_WORLD, &r[1]); }\n"
        "static MPI_Request made(double *o) { MPI_Request r;\n"
        "MPI_Send_init(o, 1, MPI_DOUBLE, 0, 5, MPI_COMM_WORLD, &r); return r; }\n"
        "struct both { MPI_Request out, in; };\n";
    const auto left_out = [&](const std::string &before, const std::string &body,
                              const std::string &name) {
        const auto found = analysed(with_loop(body, before, outside));
        EXPECT_TRUE(found.is_done()) << reasons(found);
        std::string all;
        for (const auto &one : found.live.left_out)
            all += one.reason + "\n";
        EXPECT_NE(all.find("'" + name + "': holds persistent requests"), std::string::npos) << all;
    };
    const std::string wait = "MPI_Wait(&q, NULL); MPI_Wait(&r, NULL);",
                      begin = "MPI_Start(&q); MPI_Start(&r);",
                      receive = "MPI_Recv_init(&all, 1, MPI_DOUBLE, 0, 5, MPI_COMM_WORLD, &q);";
    left_out("MPI_Request rs[2]; make(&sum, &all, rs);",
             "MPI_Start(&rs[0]); MPI_Start(&rs[1]); MPI_Waitall(2, rs, NULL);", "rs");
    left_out("MPI_Request q, r = made(&sum);" + receive, begin + wait, "r");
    left_out("MPI_Request q, one = made(&sum), r; r = one;" + receive, begin + wait, "r");
    expect_refused(with_loop(begin + wait + "{ MPI_Request t = q; q = r; r = t; }",
                             "MPI_Request q, r = made(&sum);" + receive, outside),
                   "a persistent request, or what leads to one, gets another value");
    expect_refused(with_loop("MPI_Start(&b.in); MPI_Start(&b.out); MPI_Wait(&b.in, NULL);"
                             "MPI_Wait(&b.out, NULL); { struct both t = b; b = c; c = t; }",
                             "struct both b = {0, 0}, c = {0, 0}; b.out = made(&sum);"
                             "MPI_Recv_init(&all, 1, MPI_DOUBLE, 0, 5, MPI_COMM_WORLD, &b.in);",
                             outside),
                   "a handle of MPI gets another value");
}

TEST(ResourcesTest, AFileThatCouldNotBeOpenedIsNone)
{
    for (const std::string open : {"FILE *f = fopen(\"o\", \"a\"); if (f) {",
                                   "FILE *f = fopen(\"o\", \"a\"); if (f != NULL) {",
                                   "FILE *f; if ((f = fopen(\"o\", \"a\")) != NULL) {",
                                   "FILE *f = fopen(\"o\", \"a\"); if (!f) MPI_Abort(0, 1); else {",
                                   "FILE *f = fopen(\"o\", \"a\"); if (!(f == NULL) && step) {"}) {
        expect_refused(with_loop(open + "fprintf(f, \"%d\", step); }"), "a file may be open");
        if (open.find("&&") == std::string::npos)
            expect_done(with_loop(open + "fprintf(f, \"%d\", step); fclose(f); }"));
        else /* it may be open where step is 0 */
            expect_refused(with_loop(open + "fclose(f); }"), "a file may be open");
    }
    expect_refused(with_loop("FILE *f = fopen(\"o\", \"a\"); if (!f) fclose(f);"),
                   "a file may be open");
}

TEST(ResourcesTest, AFileThatIsOpenedOnOneWay)
{
    const std::string outside = "# 1 \"stdio.h\" 3\nextern FILE *stdout;\n# 1 \"small.c\"\n"
                                "static FILE *get(const char *p) { return fopen(p, \"w\"); }\n"
                                "static FILE *same(const char *p) { FILE *f = fopen(p, \"w\");"
                                " if (!f) MPI_Abort(0, 1); return f; }\n";
    const std::string opened = "FILE *f = step ? fopen(\"o\", \"w\") : stdout;";
    expect_refused(with_loop(opened + "fprintf(f, \"x\");", "", outside), "a file may be open");
    expect_done(with_loop(opened + "fprintf(f, \"x\"); if (f != stdout) fclose(f);", "", outside));
    expect_refused(with_loop(opened + "if (f != stdout && step) fclose(f);", "", outside),
                   "a file may be open");
    for (const std::string by : {"get", "same"}) {
        expect_refused(with_loop("FILE *f = " + by + "(\"o\"); fprintf(f, \"x\");", "", outside),
                       "a file may be open");
        expect_done(
            with_loop("FILE *f = " + by + "(\"o\"); fprintf(f, \"x\"); fclose(f);", "", outside));
    }
}

} // namespace zc::instrument
