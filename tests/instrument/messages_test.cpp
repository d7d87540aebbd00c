/* SPDX-License-Identifier: BSD-3-Clause */
#include "small_source.h"

namespace zc::instrument {

namespace {

std::string send(const std::string &tag)
{
    return "MPI_Send(&sum, 1, 0, 0, " + tag + ", MPI_COMM_WORLD);";
}

std::string receive(const std::string &tag)
{
    return "MPI_Recv(&all, 1, 0, 0, " + tag + ", MPI_COMM_WORLD, NULL);";
}

const std::string kUndecided = "could not decide whether a message is on its way",
                  kOtherIterations = "in the same iterations of it: its tag is 5",
                  kComputed = "its tag is computed, and not by the same expression";

} // namespace

TEST(MessagesTest, AMessageWhoseOtherHalfIsElsewhere)
{
    expect_refused(with_loop(send("5"), "", "", receive("5")),
                   "a message is sent in this loop, and received outside of it: its tag is 5");
    expect_refused(with_loop(receive("5"), "", "", send("5")),
                   "a message is received in this loop, and sent outside of it: its tag is 5");
}

TEST(MessagesTest, AComputedTagMatchesNoOther)
{
    const std::string tags = "int tag = 5, other = 5; if (argc > 1) tag = other = argc;";
    expect_done(with_loop(send("tag + 1") + receive("tag + 1"), tags));
    expect_refused(with_loop(send("tag") + receive("5"), tags), kComputed);
    expect_refused(with_loop(send("tag") + receive("5"), tags),
                   "tags of what is sent in it are computed: its tag is 5");
    expect_refused(with_loop(send("tag") + receive("other + step"), tags), kComputed);
    expect_refused(with_loop(send("tag"), tags, "", receive("tag")), kComputed);
}

TEST(MessagesTest, AComputedTagIsTheSameOnBothSides)
{
    expect_done(with_loop(send("100 + step") + receive("100 + step")));
    expect_refused(with_loop(send("tag") + "tag++;" + receive("tag"), "int tag = 5;"), kComputed);
    expect_refused(with_loop("tag = step % 2;" + send("tag") + receive("tag"), "int tag;"),
                   kComputed);
    expect_refused(with_loop(send("tag") + receive("tag"), "int tag = 5, *p = &tag; (*p)++;"),
                   kComputed);
    expect_refused(with_loop(send("*p") + receive("*p"), "int tag = 5, *p = &tag;"), kComputed);
}

TEST(MessagesTest, TagsMayCountInLoops)
{
    expect_done(with_loop("for (int i = 0; i < 4; i++) {" + send("10 + i") +
                          "} for (int i = 0; i < 4; i++) {" + receive("10 + i") + "}"));
    expect_refused(with_loop("for (i = 0; i < 4; i++) {" + send("10 + i") +
                                 "} for (i = 0; i < 4; i++) {" + receive("20 + i") + "}",
                             "int i;"),
                   kComputed);
}

TEST(MessagesTest, TagsAreFollowedIntoFunctions)
{
    const std::string outside =
        "static void give(double *x, int tag) { MPI_Send(x, 1, 0, 0, tag, MPI_COMM_WORLD); }\n"
        "static void take(double *x, int tag) { MPI_Recv(x, 1, 0, 0, tag, MPI_COMM_WORLD, NULL); "
        "}\n"
        "static void swap(double *x, double *y, int side) { give(x, 7 + side); take(y, 7 + side); "
        "}\n";
    expect_done(with_loop("give(&sum, 5); take(&all, 5);", "",
                          outside.substr(0, outside.find("static void swap"))));
    expect_refused(with_loop("give(&sum, 5); take(&all, 6);", "",
                             outside.substr(0, outside.find("static void swap"))),
                   "received outside of it: its tag is 5");
    expect_done(with_loop("for (int s = 0; s < 2; s++) swap(&sum, &all, s);", "", outside));
}

/* Followed one by one, the ways to each of these would be more than can be counted. */
TEST(MessagesTest, TagsThatAreComputedInManyWaysTakeNoLonger)
{
    std::string sums = "int t0 = rank;", callers = "static double z;\nstatic void f0(int t) { " +
                                                   send("t") + receive("t") + "}\n";
    for (const char *from : {"&sum", "&all"})
        callers.replace(callers.find(from), 4, "&z");
    for (int i = 1; i <= 40; i++) {
        const auto below = std::to_string(i - 1), own = std::to_string(i);
        sums += "int t" + own + " = t" + below + " + t" + below + ";";
        callers += "static void f" + own + "(int t) { f" + below + "(t); f" + below + "(t); }\n";
    }
    expect_done(with_loop(sums + send("t40") + receive("t40")));
    analysed(with_loop("f40(1);", "", callers));
}

TEST(MessagesTest, AnyTagIsAnyTag)
{
    expect_done(with_loop(send("5") + receive("-1")));
    expect_refused(with_loop(send("5") + "if (step > 0) {" + receive("-1") + "}"),
                   kOtherIterations);
}

/* One is always on its way at the safe point. */
TEST(MessagesTest, AMessageOfTheIterationBefore)
{
    expect_refused(
        with_loop(send("5") + "if (step > 0) {" + receive("5") + "}", "", "", receive("5")),
        kOtherIterations);
    expect_refused(
        with_loop(send("5") + "if (step == 0) continue;" + receive("5"), "", "", receive("5")),
        kOtherIterations);
    expect_refused(with_loop(send("5") + "get(&all, step);", "",
                             "static void get(double *x, int step) { if (step == 0) return;\n"
                             "MPI_Recv(x, 1, 0, 0, 5, MPI_COMM_WORLD, NULL); }",
                             receive("5")),
                   kOtherIterations);
    expect_refused(with_loop(send("5") + "step && MPI_Recv(&all, 1, 0, 0, 5, MPI_COMM_WORLD, 0);",
                             "", "", receive("5")),
                   kOtherIterations);
    expect_refused(with_loop(send("5") + "int late = step > 0; if (late) {" + receive("5") + "}",
                             "", "", receive("5")),
                   kOtherIterations);
    expect_refused(with_loop(send("5") + "if (s.late) {" + receive("5") + "} s.late = 1;",
                             "struct state s; s.late = 0;", "struct state { int late; };",
                             receive("5")),
                   kOtherIterations);
}

TEST(MessagesTest, BothHalvesInTheSameIterations)
{
    expect_done(with_loop("if (step % 10 == 0) {" + send("5") + receive("5") + "}"));
    expect_done(with_loop("if (step % 10 == 0) {" + send("5") + "} if (step % 10 == 0) {" +
                          receive("5") + "}"));
    expect_refused(with_loop("if (step % 10 == 0) {" + send("5") + "} else {" + receive("5") + "}"),
                   kOtherIterations);
    expect_refused(
        with_loop("if (late) {" + send("5") + "} late = !late; if (late) {" + receive("5") + "}",
                  "int late = 0;"),
        kOtherIterations);
    expect_done(
        with_loop("if (step == 3) continue; if (step == 5) break;" + send("5") + receive("5")));
    expect_done(with_loop(send("5") + "if (step == 5) break;" + receive("5")));
}

TEST(MessagesTest, WhatTheRankDecidesIsTheSameInEachIteration)
{
    expect_done(
        with_loop("if (rank > 0) {" + send("5") + "} else if (size > 1) {" + receive("5") + "}",
                  "int size; MPI_Comm_size(MPI_COMM_WORLD, &size);"));
    expect_done(with_loop("if (rank > 0) {" + send("5") +
                              "} else for (from = 1; from < size; from++) {" + receive("5") + "}",
                          "int size, from; MPI_Comm_size(MPI_COMM_WORLD, &size);"));
}

TEST(MessagesTest, LoopsInsideAreAsLongInEachIteration)
{
    expect_refused(
        with_loop("for (i = 0; i < step; i++) {" + send("5") + "}" + receive("5"), "int i;"),
        kOtherIterations);
    expect_refused(
        with_loop("for (i = step; i < 9; i++) {" + send("5") + "}" + receive("5"), "int i;"),
        kOtherIterations);
    expect_refused(with_loop("for (i = 0; i < 9; i++) {" + send("5") + "if (i == step) break;" +
                                 receive("5") + "}",
                             "int i;"),
                   kOtherIterations);
}

TEST(MessagesTest, AMessageThatIsOnItsWayInAllOfTheLoop)
{
    const std::string reason =
        "a message is sent in front of this loop, and received in or behind it";
    expect_refused(with_loop("", send("5"), "", receive("5")), reason + ": its tag is 5");
    expect_refused(with_loop("", send("5 + argc"), "", receive("-1")), reason);
    expect_refused(with_loop(receive("5") + send("5"), send("5"), "", receive("5")), reason);
    expect_done(with_loop("", send("5") + receive("5"), "", send("5") + receive("5")));
    expect_done(with_loop("", "if (rank) {" + send("5") + "} else {" + receive("5") + "}"));
}

TEST(MessagesTest, WhatLeavesALoopThatIsRepeatedComesToItAgain)
{
    const std::string text =
        "int main(int argc, char **argv) { int i, k; double sum = 0, all = 0;\n"
        "MPI_Init(&argc, &argv);\n"
        "for (k = 0; k < 9; k++)\n"
        "for (i = 0; i < 9; i++) { " +
        send("5") + "if (i == k) break; " + receive("5") + "}\nMPI_Finalize(); return 0; }\n";
    expect_refused(text, kOtherIterations);
}

/* put() and get() with a tag, for the tests that call them in several places. */
const std::string kWrappers =
    "static void put(double *x, int tag) { MPI_Send(x, 1, 0, 0, tag, MPI_COMM_WORLD); }\n"
    "static void get(double *x, int tag) { MPI_Recv(x, 1, 0, 0, tag, MPI_COMM_WORLD, NULL); }\n";

TEST(MessagesTest, EachWayToACallHasItsTagAndItsConditions)
{
    expect_refused(with_loop("put(&sum, 1); if (step > 0) { get(&all, 1); put(&sum, 3); "
                             "get(&all, 3); }",
                             "", kWrappers, "get(&all, 1);"),
                   "in the same iterations of it: its tag is 1");
    expect_done(with_loop("put(&sum, 1); get(&all, 1); if (step % 9 == 0) { put(&sum, 3); "
                          "get(&all, 3); }",
                          "", kWrappers));
    const std::string either = "static void either(double *x, int sends) { if (sends) " +
                               std::string("put(x, 1); else get(x, 1); }\n");
    expect_done(with_loop("either(&sum, 1); either(&all, 0);", "", kWrappers + either));
    expect_refused(with_loop("either(&sum, 1); if (step > 0) either(&all, 0);", "",
                             kWrappers + either, "get(&all, 1);"),
                   "in the same iterations of it: its tag is 1");
}

TEST(MessagesTest, WhatAPointerCallsIsNotDecided)
{
    expect_refused(with_loop("one(&sum, 1); other(&all, 1);",
                             "void (*one)(double *, int) = put, (*other)(double *, int) = get;"
                             "if (rank) one = get;",
                             kWrappers),
                   kUndecided);
}

TEST(MessagesTest, ALoopInsideAnotherOne)
{
    const auto nested = [](const std::string &inner, const std::string &before = "",
                           const std::string &behind = "") {
        return "int main(int argc, char **argv) { int step, k; double sum = 0, all = 0;\n"
               "MPI_Init(&argc, &argv);\nfor (step = 0; step < 9; step++) {" +
               before + "\nfor (k = 0; k < 9; k++) {" + inner +
               "\nMPI_Allreduce(&sum, &all, 1, 0, 0, MPI_COMM_WORLD); sum += all; }" + behind +
               "}\nMPI_Finalize(); return 0; }\n";
    };
    expect_done(nested(send("5") + receive("5")));
    expect_refused(
        nested("if (step % 2 == 0) {" + send("5") + "} if (step % 2 == 1) {" + receive("5") + "}"),
        kOtherIterations);
    /* The loop around it may have one, or not; this one may not. */
    for (const auto &[before, behind] :
         {std::pair("if (step > 0) {" + receive("5") + "}" + send("5"), std::string()),
          std::pair(send("5"), receive("5")), std::pair(receive("5"), send("5"))})
        EXPECT_NE(reasons(analysed(nested("", before, behind)))
                      .find("(of the loop around it, small.c:3)"),
                  std::string::npos);
    expect_done(nested("", send("5") + receive("5"), send("6") + receive("6")));
}

TEST(MessagesTest, WhatLeavesALoopInside)
{
    const std::string jump = send("5") + "if (step == 0) break;" + receive("5");
    expect_refused(
        with_loop("int k = 0; do {" + jump + "k++; } while (k < 1);", "", "", receive("5")),
        kOtherIterations);
    expect_refused(with_loop("while (1) {" + jump + "break; }", "", "", receive("5")),
                   kOtherIterations);
    expect_refused(with_loop("switch (rank) { case 0: " + jump + "}", "", "", receive("5")),
                   kOtherIterations);
}

TEST(MessagesTest, OperatorsThatSkipTheirRightSide)
{
    const std::string condition = "(void)((step % 2) ", sent = "MPI_Send(&sum, 1, 0, 0, 5, 0));",
                      received = "MPI_Recv(&all, 1, 0, 0, 5, 0, 0));";
    expect_done(with_loop(condition + "|| " + sent + condition + "|| " + received));
    expect_refused(with_loop(condition + "&& " + sent + condition + "|| " + received),
                   kOtherIterations);
    expect_refused(with_loop(condition + "?: " + sent + receive("5")), kOtherIterations);
}

TEST(MessagesTest, ReceivesOfAnyTagAreLookedAt)
{
    expect_refused(
        with_loop(send("1") + "if (step > 0) {" + receive("-1") + "}" + send("2") + receive("-1"),
                  "", "", receive("1")),
        kUndecided + ": it is received in this loop");
}

TEST(MessagesTest, AsManyAreReceivedAsAreSent)
{
    expect_refused(with_loop("for (int i = 0; i < 2; i++) " + send("5") + receive("5")),
                   "messages are sent 2 times in an iteration of this loop, and received 1 times");
    expect_refused(with_loop(send("5") + send("6") + receive("-1")), "and received 1 times");
    expect_done(
        with_loop("for (int i = 0; i < 2; i++) " + send("5") + receive("5") + receive("5")));
    expect_done(with_loop("int d; for (d = 0; d < 2; d++) {" + send("10 + d") +
                          "} for (d = 0; d < 2; d++) {" + receive("10 + (1 - d)") + "}"));
}

TEST(MessagesTest, WhatIsSentAfterTheBodyIsOfTheIteration)
{
    std::string text = with_loop(receive("5") + send("5") + receive("5"));
    const std::string count = "step++";
    text.replace(text.find(count), count.size(), "step++, MPI_Send(&sum, 1, 0, 0, 5, 0)");
    expect_done(text);
    expect_refused(
        with_loop(receive("5") + send("5"), "int t = 5; if (argc > 1) t = 6;" + send("t")),
        "a message is sent in front of this loop, and received in or behind it: its "
        "tag is computed");
}

TEST(MessagesTest, TheLastMessageInFrontIsReceivedThere)
{
    const std::string reason = "a message is sent in front of this loop, and received in or behind";
    const std::string turn = receive("5") + send("5");
    expect_refused(with_loop(turn, send("5") + turn, "", receive("5")), reason);
    expect_refused(with_loop(turn, "int t; t = 5;" + send("t"), "", receive("5")), reason);
    expect_refused(with_loop(turn, "if (rank > 0) {" + turn + "}", "", receive("5")), reason);
    expect_done(
        with_loop(turn, "if (rank) {" + receive("5") + "} else {" + send("5") + "}", "", turn));
    expect_done(with_loop(turn,
                          "if (rank == 0) for (int i = 1; i < argc; i++) {" + send("i") +
                              "} else {" + receive("rank") + "}",
                          "", "if (rank) {" + send("rank") + "} else {" + receive("-1") + "}"));
    expect_done(with_loop(turn, "MPI_Request r; MPI_Irecv(&all, 1, 0, 0, 5, 0, &r);" + send("5") +
                                    "MPI_Wait(&r, NULL);"));
}

TEST(MessagesTest, RanksThatDecideOtherwiseInAnIteration)
{
    const std::string both = send("5") + receive("5"), differs = "ranks may come here in different";
    expect_refused(with_loop("if (step % 2 == rank % 2) {" + both + "}"), differs);
    expect_refused(with_loop("if ((step + rank) % 2) {" + both + "} else {" + both + both + "}"),
                   differs);
    expect_done(
        with_loop("if ((step + rank) % 2) {" + both + "} else {" + receive("5") + send("5") + "}"));
    expect_done(with_loop("if (step % size == 0) {" + both + "}",
                          "int size; MPI_Comm_size(MPI_COMM_WORLD, &size);"));
}

/* The tag is the sender: that of one's own, and of whom it comes from. */
TEST(MessagesTest, ComputedTagsInPairsThatAreTheSameInEachIteration)
{
    const std::string left = "int left = rank - 1;";
    expect_done(with_loop(send("rank") + receive("left"), left));
    expect_refused(with_loop(send("rank") + receive("left") + receive("left"), left), kComputed);
    expect_refused(with_loop(send("rank") + "if (step > 0) {" + receive("left") + "}", left, "",
                             receive("left")),
                   kComputed);
    expect_refused(with_loop("if (rank > 0) {" + send("rank") + "}" + receive("left"), left),
                   kComputed);
    expect_refused(with_loop(receive("left") + send("rank"), left + send("rank")),
                   "a message is sent in front of this loop");
}

/* As in a sort by odd and even steps. */
TEST(MessagesTest, RanksThatSwapMessagesWithOneOther)
{
    const auto swap = [](const std::string &from) {
        return "int to = (step + rank) % 2 ? rank - 1 : rank + 1; if (to >= 0) "
               "MPI_Sendrecv(&sum, 1, 0, to, 5, &all, 1, 0, " +
               from + ", 5, MPI_COMM_WORLD, NULL);";
    };
    const std::string declared = "int MPI_Sendrecv(const void *, int, MPI_Datatype, int, int, "
                                 "void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status *);";
    expect_done(with_loop(swap("to"), "", declared));
    expect_refused(with_loop(swap("rank"), "", declared), "ranks may come here in different");
    expect_refused(with_loop("if ((step + rank) % 2) MPI_Sendrecv(&sum, 1, 0, next(), 5, &all, 1, "
                             "0, next(), 5, MPI_COMM_WORLD, NULL);",
                             "", declared + "static int next(void) { static int k; return k++; }"),
                   "ranks may come here in different");
}

TEST(MessagesTest, PersistentRequestsThatAreStarted)
{
    const std::string make = "MPI_Request r[2]; MPI_Send_init(&sum, 1, 0, 0, 5, MPI_COMM_WORLD, r);"
                             "MPI_Recv_init(&all, 1, 0, 0, 5, MPI_COMM_WORLD, r + 1);",
                      wait = "MPI_Waitall(2, r, NULL);";
    expect_done(with_loop("MPI_Start(&r[0]); MPI_Start(&r[1]);" + wait, make));
    expect_refused(with_loop("MPI_Start(&r[0]); if (step) MPI_Start(&r[1]);" + wait, make),
                   kUndecided + ": this starts persistent requests in other iterations");
    expect_refused(with_loop("MPI_Start(&r); MPI_Wait(&r, NULL);",
                             "MPI_Request r; MPI_Send_init(&sum, 1, 0, 0, 5, MPI_COMM_WORLD, &r);"),
                   "received outside of it: its tag is 5");
}

TEST(MessagesTest, NumbersThatCannotBeComputed)
{
    for (const std::string by : {"-1", "0"})
        expect_refused(
            with_loop("f(" + by + ");", "",
                      "static double sum, all; static void f(int t) { if ((-9223372036854775807L "
                      "- 1) % t == 0) {" +
                          send("5") + "}" + receive("6") + "}"),
            "received outside of it: its tag is 5");
    expect_refused(with_loop("for (int d = 0; d < 4; d++) {" + send("5") +
                             "if (d - 2 < sizeof(sum)) {" + receive("5") + "} }"),
                   "in the same iterations of it: its tag is 5");
}

/* Functions that call each other in any order, and loops around calls of the function itself. */
TEST(MessagesTest, TooManyWaysWithFewMessages)
{
    std::string declared, defined;
    for (int i = 0; i < 12; i++) {
        const auto name = "f" + std::to_string(i);
        declared += "static void " + name + "(int d);";
        defined += "static void " + name + "(int d) { if (d <= 0) return;";
        for (int other = 0; other < 12; other++)
            defined += other == i ? "" : " f" + std::to_string(other) + "(d - 1);";
        defined += (i ? "" : "MPI_Send(0, 1, 0, 0, 5, 0); MPI_Recv(0, 1, 0, 0, 5, 0, 0);") +
                   std::string("}\n");
    }
    expect_refused(with_loop("f0(2);", "", declared + defined), "too many ways");
}

TEST(MessagesTest, LoopsThatMayEndBeforeTheirTime)
{
    const std::string each = "for (int d = 0; d < 4; d++) {", sends = each + send("5") + "}";
    expect_refused(with_loop(sends + each + "if (d == 2) break;" + receive("5") + "}"),
                   kOtherIterations);
    expect_refused(with_loop(sends + each + receive("5") + "break; }"), kOtherIterations);
    expect_refused(with_loop(each + send("5") + "if (d == 2) continue;" + receive("5") + "}"),
                   kOtherIterations);
    expect_refused(with_loop(sends + "f();", "",
                             "static double sum, all; static void f(void) {" + each + receive("5") +
                                 "if (d == 1) return; } }"),
                   kOtherIterations);
    expect_done(with_loop(each + "if (d == 2) continue;" + send("5") + receive("5") + "}"));
    expect_refused(with_loop("f(0);" + receive("5"), "",
                             "static double sum, all; static void f(int d) { if (!d) return;" +
                                 send("5") + "}"),
                   "sent outside of it: its tag is 5");
}

TEST(MessagesTest, AGotoThatNothingDecidesAbout)
{
    const std::string receives = receive("5");
    expect_refused(with_loop(send("5") + send("5") + "goto skip;" + receives + "skip:" + receives),
                   kOtherIterations);
    expect_done(with_loop("goto skip; skip:" + send("5") + receives));
}

TEST(MessagesTest, LoopsOfManyRounds)
{
    const auto times = [](const std::string &type, const std::string &count,
                          const std::string &what) {
        return "for (" + type + " d = 0; d < " + count + "; d++) {" + what + "}";
    };
    for (const std::string count : {"99", "5000"}) {
        expect_refused(
            with_loop(times("int", "100", send("5")) + times("int", count, receive("5"))),
            kOtherIterations);
        expect_done(with_loop(times("int", count, send("5") + receive("5"))));
    }
    expect_done(with_loop(times("int", "100", send("5")) + times("int", "100", receive("5"))));
    expect_refused(with_loop(times("int", "66", send("5")) + receive("5")), kOtherIterations);
    expect_refused(with_loop(times("size_t", "4", send("5")) + times("size_t", "3", receive("5"))),
                   "messages are sent 4 times in an iteration of this loop, and received 3 times");
}

TEST(MessagesTest, ALoopThatIsABlock)
{
    const auto once = [](const std::string &what) { return "do {" + what + "} while (0);"; };
    expect_done(with_loop(once(send("rank")) + once(receive("left")), "int left = rank - 1;"));
    expect_refused(with_loop(once(send("5")) + once(send("5")) + once(receive("5"))),
                   "messages are sent 2 times in an iteration of this loop, and received 1 times");
}

/* Variables of the same name that are others in each call, or in each round. */
TEST(MessagesTest, LocalVariablesThatDecide)
{
    const auto calls = [](const std::string &parameter, const std::string &on,
                          const std::string &first, const std::string &second) {
        return with_loop("now = step; f(" + first + ", 1); f(" + second + ", 0);", "",
                         "static double sum, all; static int now; static void f(" + parameter +
                             ", int out) {" + on + "if (on) { if (out) " + send("5") + " else " +
                             receive("5") + "} }");
    };
    expect_refused(calls("int phase", "int on = (now + phase) % 2;", "1", "0"), kOtherIterations);
    expect_refused(calls("_Bool on", "", "step % 2 == 0", "step % 2 == 1"), kOtherIterations);
    expect_refused(with_loop("f(step % 2, 1); f((step + 1) % 2, 0);", "",
                             "static double sum, all; static void f(int on, _Bool out) {"
                             "if (on) { if (out) " +
                                 send("5") + " else " + receive("5") + "} }"),
                   kOtherIterations);
    expect_refused(calls("double on", "", "step % 2", "(step + 1) % 2"), kOtherIterations);
    expect_done(calls("int on", "", "step % 2", "step % 2"));
    expect_refused(with_loop("for (int d = 0; d < 2; d++) { int x = (step + d) % 2; if (x) {"
                             "if (d == 0) " +
                             send("5") + "if (d == 1) " + receive("5") + "} }"),
                   kOtherIterations);
    expect_done(with_loop("for (int d = 0; d < 2; d++) { int x = (step + d) % 2; if (x) {" +
                          send("5") + receive("5") + "} }"));
}

TEST(MessagesTest, FieldsThatPointersLeadTo)
{
    const auto flips = [](const std::string &keep, const std::string &field) {
        const std::string both = "if (p->" + field + ")";
        return with_loop(both + send("5") + "*g = !*g;" + both + receive("5"), keep,
                         "struct s { int on, all[4]; }; static struct s *p, one; static int *g;"
                         "static void keep(int *x) { g = x; }");
    };
    expect_refused(flips("p = &one; keep(&p->on);", "on"), kOtherIterations);
    expect_refused(flips("p = &one; g = p->all;", "all[0]"), kOtherIterations);
}

TEST(MessagesTest, CasesOfASwitchAreTwoOnOneLine)
{
    expect_refused(with_loop("switch (step % 2) { case 0: " + send("5") +
                             " break; case 1: " + receive("5") + "}"),
                   kOtherIterations);
}

TEST(MessagesTest, HowOftenIsAssumedWhereItIsNoNumber)
{
    const std::string often = "how often it is sent and received is not compared";
    expect_assumed(with_loop("if (rank > 0) {" + send("5") + "} else {" + receive("5") + "}"),
                   often);
    expect_assumed(with_loop("if (rank > 0) {" + send("5") + "}" + receive("5")), often);
    expect_assumed(with_loop("for (int i = 0; i < argc; i++) {" + send("5") + "}" + receive("5")),
                   often + ", as that is no number: its tag is 5");
    expect_assumed(with_loop("if (rank > 0) {" + send("5") + send("5") + receive("5") + "}"),
                   often);
    expect_assumed(
        with_loop("switch (rank) { case 0: " + send("5") + " break; case 1: " + receive("5") + "}"),
        often);
    expect_assumed(with_loop("if (rank > 0) {" + send("5") + "} else {" + receive("-1") + "}"),
                   often);
    expect_assumed(with_loop("f(rank, 1); f(argc, 0);", "",
                             "static double sum, all; static void f(int on, int out) { if (on) {"
                             "if (out) " +
                                 send("5") + " else " + receive("5") + "} }"),
                   often);
}

TEST(MessagesTest, NothingIsAssumedWhereTheSameDecidesAboutBoth)
{
    const std::string both = send("5") + receive("5");
    expect_decided(with_loop(both));
    expect_decided(with_loop("if (rank > 0) {" + both + "}"));
    expect_decided(
        with_loop("if (rank > 0) {" + send("5") + "} if (rank > 0) {" + receive("5") + "}"));
    expect_decided(with_loop("for (int i = 0; i < argc; i++) {" + both + "}"));
    expect_decided(with_loop("if (step % 10 == 0) {" + both + "}"));
    expect_decided(with_loop(both, both));
    expect_decided(with_loop(both, "if (rank > 0) {" + both + "}", "", both));
}

TEST(MessagesTest, OtherTagsAreAssumedToBeThose)
{
    expect_assumed(with_loop(send("rank") + receive("left"), "int left = rank - 1;"),
                   "another tag is taken for that of what is received");
}

TEST(MessagesTest, TheOrderOfTheTextIsAssumedToBeThatOfMessages)
{
    const std::string both = receive("5") + send("5"), order = "only the order of the text tells";
    expect_assumed(
        with_loop(both, "if (rank) {" + receive("5") + "} else {" + send("5") + "}", "", both),
        order);
    expect_assumed(with_loop(both, "if (argc > 1) {" + send("5") +
                                       "} argc = rank; if (argc > 1) {" + receive("5") + "}"),
                   order);
    /* None that is received later can be one of these. */
    expect_decided(with_loop(send("6") + receive("6"),
                             "if (rank) {" + receive("5") + "} else {" + send("5") + "}"));
}

TEST(MessagesTest, PersistentRequestsAreAssumedToBeStartedOnce)
{
    expect_assumed(with_loop("MPI_Start(&r[0]); MPI_Start(&r[1]); MPI_Waitall(2, r, NULL);",
                             "MPI_Request r[2]; MPI_Send_init(&sum, 1, 0, 0, 5, MPI_COMM_WORLD, r);"
                             "MPI_Recv_init(&all, 1, 0, 0, 5, MPI_COMM_WORLD, r + 1);"),
                   "which persistent requests this starts is not followed");
}

TEST(MessagesTest, AStrictChoiceTakesAnotherLoop)
{
    settings strict;
    strict.is_strict = true;
    const auto found =
        analysed("int main(int argc, char **argv) { int step, k, rank; double sum = 0, all;\n"
                 "MPI_Init(&argc, &argv); MPI_Comm_rank(MPI_COMM_WORLD, &rank);\n"
                 "for (step = 0; step < 9; step++) {" +
                     send("6") + receive("6") + "sum += all; }\nfor (k = 0; k < 9; k++) {" +
                     "if (rank) " + send("5") + " else " + receive("5") +
                     "sum += all; all += sum * sum; sum -= all; }\n"
                     "printf(\"%f\", sum); MPI_Finalize(); return 0; }\n",
                 strict);
    ASSERT_TRUE(found.is_done()) << reasons(found);
    EXPECT_EQ(found.chosen->place, "small.c:3");
}

TEST(MessagesTest, PersistentRequestsThatAreStartedInFrontOfTheLoop)
{
    const std::string send_once = "MPI_Request r; MPI_Send_init(&sum, 1, 0, 0, 5, 0, &r);"
                                  "MPI_Start(&r); MPI_Wait(&r, NULL);";
    expect_refused(with_loop(receive("5") + send("5"), send_once), "sent in front of this loop");
    expect_done(with_loop(receive("5") + send("5"), send_once + receive("5")));
}

} // namespace zc::instrument
