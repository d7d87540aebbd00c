/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZCP_GROUPING_TEIRESIAS_H_INCLUDED
#define ZCP_GROUPING_TEIRESIAS_H_INCLUDED

#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

#include "memory.h"
#include "zcp/grouping.h"

namespace zc::groups {

/**
 * TEIRESIAS: all maximal <L,W,K> patterns of one text.
 *
 * I. Rigoutsos, A. Floratos: Combinatorial pattern discovery in biological
 * sequences: the TEIRESIAS algorithm. Bioinformatics 14(1):55-67, 1998.
 *
 * The paper scans for elementary patterns (exactly L literals in at most W
 * places), then convolves: P (+) Q exists where the last L-1 literals of P are
 * the first L-1 of an elementary Q, and its offsets are those of P at which Q
 * follows. As Q adds one literal, its place and symbol, to what P already says,
 * one pass over the offsets of P per place, sorting them by the symbol found
 * there, convolves P with every Q of that shape at once. The scan is the same
 * step applied to patterns of fewer than L literals.
 *
 * Only to the right: a pattern is dropped with all its extensions as soon as a
 * don't-care within it, or a place on its left that a literal may take, holds
 * one symbol at all offsets. Offsets of an extension are a subset, so it would
 * hold there too: nothing maximal is lost, no table of maximal patterns is
 * needed, and every pattern is met once (the prefix argument of LCM, Uno et al.
 * 2004). The paper convolves to both sides and compares with what it has found.
 */
class teiresias {
  public:
    struct pattern {
        std::pmr::vector<uint32_t> symbols;
        std::pmr::vector<uint32_t> offsets;
        uint32_t literals;
        bool cut;
    };

    /** @params complete: no zero fields. Throws std::bad_alloc if the tables do not fit. */
    teiresias(std::span<const uint32_t> text, const zcp_patterns_params_t &params,
              std::pmr::memory_resource *memory);

    /** Appends to @out, also until a budget ends it. */
    zcp_patterns_end_t find(std::pmr::vector<pattern> &out);

    uint64_t steps() const { return steps_; }

  private:
    /* A pattern still to be extended. Its places before the last literal are
     * those of its parent, which is what pattern_ holds when its turn comes. */
    struct candidate {
        uint32_t parent_length;
        uint32_t parent_literals;
        uint32_t gap; /* places from the parent's end to the literal, 1: adjacent */
        uint32_t symbol;
        std::pmr::vector<uint32_t> offsets;
    };
    struct stop {
        zcp_patterns_end_t why;
    };

    void number_symbols(std::span<const uint32_t> text);
    void seed();
    void visit(const candidate &next, std::pmr::vector<pattern> &out);
    void append(uint32_t gap, uint32_t symbol);
    bool same_everywhere(const std::pmr::vector<uint32_t> &offsets, int64_t place) const;
    bool redundant_inside(const std::pmr::vector<uint32_t> &offsets) const;
    bool redundant_left(const std::pmr::vector<uint32_t> &offsets) const;
    void run_on(const std::pmr::vector<uint32_t> &offsets);
    uint32_t widest_gap() const;
    void convolve(const std::pmr::vector<uint32_t> &offsets, uint32_t gap);
    void report(const std::pmr::vector<uint32_t> &offsets, bool cut,
                std::pmr::vector<pattern> &out) const;
    void spend(uint64_t steps) const;

    zcp_patterns_params_t params_;
    std::pmr::memory_resource *memory_;
    uint32_t nr_symbols_ = 0;
    std::pmr::vector<uint32_t> text_;     /* numbered from 0 by first appearance */
    std::pmr::vector<uint32_t> names_;    /* number to symbol */
    std::pmr::vector<uint32_t> counts_;   /* by number; all 0 between uses */
    std::pmr::vector<uint32_t> slots_;    /* by number; list an offset goes to */
    std::pmr::vector<uint32_t> touched_;  /* numbers with a count */
    std::pmr::vector<uint32_t> pattern_;  /* numbers, ZCP_DONT_CARE */
    std::pmr::vector<uint32_t> places_;   /* of the literals in pattern_ */
    std::pmr::vector<candidate> pending_; /* depth first: last in, first out */
    mutable uint64_t steps_ = 0;
    mutable uint64_t next_poll_ = 0;
};

} // namespace zc::groups

#endif
