/* SPDX-License-Identifier: BSD-3-Clause */

/* The predictors of Freitag et al. against the paper's text: examples worked by hand, and
 * every prediction compared with that of a literal reading of it. */
#include <algorithm>
#include <random>
#include <string>

#include "engine.h"
#include "freitag_reference.h"
#include "receive_trace.h"

using namespace zcp_test;

namespace {

/** One receive for each letter. */
std::vector<zcp_receive_t> letters(const std::string &text)
{
    std::vector<zcp_receive_t> out;
    for (const char c : text)
        out.push_back(to(envelope(c - 'A'), 0x1000u * static_cast<uint64_t>(c - 'A' + 1)));
    return out;
}

std::string foretold(const engine &engine, uint32_t k)
{
    std::string out;
    for (const zcp_receive_t &r : engine.next(k))
        out += static_cast<char>('A' + r.envelope.source);
    return out;
}

zcp_params_t dpd(uint32_t window, uint32_t least)
{
    zcp_params_t params = params_of(ZCP_DPD);
    params.dpd_window = window;
    params.dpd_least = least;
    return params;
}

/* ABC was followed by D, A, D; so D is likelier. BCD was followed by E, then by A; A is
 * later. CDA, DAB: once each. Hence DABC, over and over. */
TEST(FreitagGraphTest, WalksTheLikeliestSuccessors)
{
    engine engine(ZCP_GRAPH);
    engine.receive(letters("ABCDEABCABCDABC"));
    EXPECT_EQ("DABCDABC", foretold(engine, 8));
}

/* A long inner loop hides what comes after it: AAA is followed by A six times of seven, so no
 * horizon reaches the B, though the period of ten is met four times. As the paper's LU at +10. */
TEST(FreitagGraphTest, DoesNotSeeThroughALongInnerLoop)
{
    engine engine(ZCP_GRAPH);
    engine.receive(letters("AAAAAAAAAB"), 4);
    EXPECT_EQ("AAAAAAAAAAAA", foretold(engine, 12));
}

/* With a history of 12 the detector has the period of ten. */
TEST(FreitagDpdTest, SeesThroughALongInnerLoop)
{
    engine engine(dpd(12, 12));
    engine.receive(letters("AAAAAAAAAB"), 3);
    EXPECT_EQ("AAAAAAAAABAA", foretold(engine, 12));
}

/* N = 4: x[i] and x[i-2] are equal for the last four i only from the sixth sample on. */
TEST(FreitagDpdTest, ComparesAWholeWindow)
{
    engine engine(dpd(4, 4));
    engine.receive(letters("ABABA"));
    EXPECT_EQ("", foretold(engine, 3));
    engine.receive(letters("B"));
    EXPECT_EQ("ABA", foretold(engine, 3));
}

/* Fitted: two rounds of two are enough, a round and a half is not. */
TEST(FreitagDpdTest, FitsTheWindowToWhatHasCome)
{
    engine engine(dpd(256, 1));
    engine.receive(letters("ABA"));
    EXPECT_EQ("", foretold(engine, 3));
    engine.receive(letters("B"));
    EXPECT_EQ("ABA", foretold(engine, 3));
}

/* After AAB AAB AA the last sample repeats at lag 1, but five do at lag 3. */
TEST(FreitagDpdTest, PrefersTheLargestWindow)
{
    engine engine(dpd(256, 1));
    engine.receive(letters("AABAABAA"));
    EXPECT_EQ("BAAB", foretold(engine, 4));
}

/* At least three: the A of AA repeats once only. */
TEST(FreitagDpdTest, FitsTheWindowDownToTheLeast)
{
    engine any(dpd(256, 1));
    engine three(dpd(256, 3));
    for (engine *each : {&any, &three})
        each->receive(letters("CBAA"));
    EXPECT_EQ("AA", foretold(any, 2));
    EXPECT_EQ("", foretold(three, 2));
    three.receive(letters("AA"));
    EXPECT_EQ("AA", foretold(three, 2));
}

TEST(FreitagDpdTest, FixedIsTheDefault)
{
    engine fixed(dpd(8, 8));
    engine given(dpd(8, 0));
    for (const zcp_receive_t &r : letters("ABABABABABABCABCABCABCABCABC")) {
        fixed.receive(r);
        given.receive(r);
        EXPECT_EQ(foretold(fixed, 10), foretold(given, 10));
    }
    zcp_t *out = nullptr;
    const zcp_params_t params = dpd(8, 9);
    EXPECT_EQ(-EINVAL, zcp_create(&params, &out));
}

/** Where what @engine says next first differs from what @reference does. */
template <typename Reference>
std::string difference(engine &engine, Reference &reference,
                       const std::vector<zcp_receive_t> &stream)
{
    sample_numbers numbers;
    for (size_t i = 0; i < stream.size(); i++) {
        engine.receive(stream[i]);
        reference.learn(numbers.of(stream[i]));
        std::vector<int> said;
        for (const zcp_receive_t &r : engine.next(10))
            said.push_back(numbers.of(r));
        if (said != reference.next(10))
            return "after receive " + std::to_string(i);
    }
    return "";
}

/** Loops of few letters, with an exception now and then. */
std::vector<zcp_receive_t> loops(uint32_t seed)
{
    std::mt19937 random(seed);
    const auto below = [&](int n) { return static_cast<int>(random() % static_cast<uint32_t>(n)); };
    std::vector<zcp_receive_t> out;
    while (out.size() < 1500) {
        std::string round;
        for (int i = 1 + below(12); i > 0; i--)
            round += static_cast<char>('A' + below(4));
        for (int i = below(20); i > 0; i--) {
            const auto part = letters(below(8) == 0 ? round + "E" : round);
            out.insert(out.end(), part.begin(), part.end());
        }
    }
    return out;
}

TEST(FreitagReferenceTest, AgreesOnLoops)
{
    for (uint32_t seed = 0; seed < 20; seed++) {
        for (const auto &[window, least] : {std::pair{32u, 32u}, {32u, 1u}, {24u, 7u}, {1u, 1u}}) {
            engine engine(dpd(window, least));
            reference_dpd reference(window, least);
            EXPECT_EQ("", difference(engine, reference, loops(seed)))
                << "window " << window << ", least " << least << ", seed " << seed;
        }
    }
}

TEST(FreitagReferenceTest, AgreesOnRecordedRuns)
{
    size_t compared = 0;
    for (const zc::report::trace &trace : zc::report::load_traces(ZCP_TEST_DATA)) {
        std::vector<zcp_receive_t> stream;
        for (const zc::report::traced_receive &r : trace.receives)
            stream.push_back(r.receive);
        stream.resize(std::min<size_t>(stream.size(), 4000));
        engine graph(ZCP_GRAPH);
        reference_graph literal;
        EXPECT_EQ("", difference(graph, literal, stream)) << trace.run << " graph";
        for (const uint32_t least : {256u, 1u}) {
            engine engine(dpd(256, least));
            reference_dpd reference(256, least);
            EXPECT_EQ("", difference(engine, reference, stream)) << trace.run << " " << least;
        }
        compared++;
    }
    EXPECT_GE(compared, 26u);
}

} // namespace
