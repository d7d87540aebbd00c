/* SPDX-License-Identifier: BSD-3-Clause */
#include "small_source.h"

namespace zc::instrument {

namespace {

/* That of the variable `it` of @declaration. */
struct made {
    std::unique_ptr<program> sources;
    layouts all;
    layouts::outcome of_it;
};

made layout_of(const std::string &declaration)
{
    made result;
    result.sources = parse_text({{"small.c", std::string(kDeclarations) + declaration}});
    const auto *variable = result.sources->globals().at("it");
    result.of_it = result.all.of(variable->getASTContext(), variable->getType(), "it");
    return result;
}

} // namespace

TEST(LayoutTest, Basic)
{
    const auto found = layout_of("double it[3][4];");
    EXPECT_EQ(found.of_it.refused, "");
    const auto &one = found.all.all()[found.of_it.number];
    EXPECT_EQ(one.size, 8u);
    ASSERT_EQ(one.fields.size(), 1u);
    EXPECT_EQ(one.fields[0].type, "DOUBLE");
    EXPECT_FALSE(found.all.has_pointers(found.of_it.number));
}

TEST(LayoutTest, StructsAreFlat)
{
    const auto found = layout_of("struct inner { char c; int n[3]; };\n"
                                 "struct { short s; struct inner in; float f; } it;");
    const auto &fields = found.all.all()[found.of_it.number].fields;
    ASSERT_EQ(fields.size(), 4u);
    EXPECT_EQ(fields[1].type, "CHAR");
    EXPECT_EQ(fields[1].offset, 4u);
    EXPECT_EQ(fields[2].offset, 8u);
    EXPECT_EQ(fields[2].count, 3u);
    EXPECT_EQ(fields[3].offset, 20u);
}

TEST(LayoutTest, ArraysOfStructs)
{
    const auto found =
        layout_of("struct pair { int n; double x; };\nstruct { struct pair p[5]; } it;");
    const auto &fields = found.all.all()[found.of_it.number].fields;
    ASSERT_EQ(fields.size(), 1u);
    EXPECT_EQ(fields[0].what, field::kind::record);
    EXPECT_EQ(fields[0].count, 5u);
    EXPECT_EQ(fields[0].size, 16u);
}

TEST(LayoutTest, PointersLeadToTypes)
{
    const auto found = layout_of("struct node { struct node *next; double **rows; } it;");
    const auto &fields = found.all.all()[found.of_it.number].fields;
    ASSERT_EQ(fields.size(), 2u);
    EXPECT_EQ(fields[0].what, field::kind::pointer);
    EXPECT_EQ(fields[0].of, found.of_it.number);
    const auto &rows = found.all.all()[fields[1].of];
    EXPECT_EQ(rows.fields[0].what, field::kind::pointer);
    EXPECT_EQ(found.all.all()[rows.fields[0].of].fields[0].type, "DOUBLE");
}

TEST(LayoutTest, AnotherSourceCompletesAType)
{
    const std::string list = "struct list { int n; struct list *next; };\n";
    const auto of = [](std::vector<std::pair<std::string, std::string>> files) {
        const auto sources = parse_text(files);
        const auto *variable = sources->globals().at("it");
        layouts all(sources.get());
        const auto found = all.of(variable->getASTContext(), variable->getType(), "it");
        if (found.refused.empty()) {
            const auto to = all.all()[found.number].fields[0].of;
            EXPECT_EQ(all.all()[to].size, 16u);
            EXPECT_EQ(all.all()[to].fields[1].of, to);
        }
        return found.refused;
    };
    const std::string it = "struct list; struct list *it;\n";
    EXPECT_EQ(of({{"a.c", it}, {"b.c", list}}), "");
    EXPECT_EQ(of({{"a.c", list}, {"b.c", it}}), "");
    const std::string incomplete = "it is a pointer to the incomplete type struct list";
    EXPECT_EQ(of({{"a.c", it}, {"b.c", "struct other { int n; };"}}), incomplete);
    EXPECT_EQ(of({{"a.c", it}, {"b.c", list}, {"c.c", "struct list { double x[2]; };"}}),
              incomplete);
}

TEST(LayoutTest, SourcesThatCompleteATypeInDifferentWays)
{
    const auto of = [](const std::string &one, const std::string &other,
                       const std::string &it = "struct list; struct list *it;\n") {
        const std::string here = "#line 1 \"list.h\"\n";
        const auto sources = parse_text({{"a.c", it}, {"b.c", here + one}, {"c.c", here + other}});
        const auto *variable = sources->globals().at("it");
        layouts all(sources.get());
        return all.of(variable->getASTContext(), variable->getType(), "it").refused;
    };
    const std::string list = "struct list { struct inner { int n; } in; struct list *next; };\n";
    EXPECT_EQ(of(list, list), "");
    for (const std::string other :
         {"struct list { struct inner { int n; } in; struct list *other; };",
          "struct list { struct inner { float n; } in; struct list *next; };",
          "struct list { struct inner { int n; } in; struct inner *next; };",
          "struct list { struct inner { int n; } in; struct list *next; int more; };",
          "struct list { struct inner { int m; } in; struct list *next; };"}) {
        EXPECT_NE(of(list, other), "") << other;
        EXPECT_NE(of("int x;", other, list + "struct list it;"), "") << other;
    }
}

TEST(LayoutTest, HandlesAreNotSaved)
{
    const auto found = layout_of("struct { MPI_Comm c; MPI_Request r[2]; } it;");
    EXPECT_EQ(found.of_it.refused, "");
    EXPECT_FALSE(found.all.is_saved(found.of_it.number));
}

TEST(LayoutTest, BitFieldsAreBytes)
{
    const auto found = layout_of("struct { int a : 3; int b : 6; int c; } it;");
    const auto &fields = found.all.all()[found.of_it.number].fields;
    ASSERT_EQ(fields.size(), 2u);
    EXPECT_EQ(fields[0].type, "BYTE");
    EXPECT_EQ(fields[0].count, 2u);
}

TEST(LayoutTest, WhatCannotBeSaved)
{
    for (const std::string declaration :
         {"void *it;", "FILE *it;", "struct hidden; struct hidden *it;",
          "union { int n; int *p; } it;", "struct { int n; double d[]; } *it;",
          "struct { struct { void *p; } deep[2]; } it;"})
        EXPECT_NE(layout_of(declaration).of_it.refused, "") << declaration;
}

TEST(LayoutTest, HandlesBehindPointersAreKnownByName)
{
    const auto layouts_of = [](const std::string &comm) {
        auto parsed =
            parse_text({{"small.c", "typedef " + comm +
                                        " MPI_Comm; struct s { MPI_Comm *all, **rows; "
                                        "int *n, **m; } s; int main(void) { return 0; }"}});
        const auto *variable = parsed->globals().at("s");
        layouts known(parsed.get());
        EXPECT_EQ(known.of(variable->getASTContext(), variable->getType(), "s").refused, "");
        std::string text;
        for (const auto &one : known.all())
            for (const auto &each : one.fields)
                text += one.name + (each.what == field::kind::handle    ? " handle;"
                                    : each.what == field::kind::pointer ? " pointer;"
                                                                        : " other;");
        return text;
    };
    EXPECT_NE(layouts_of("int").find("MPI_Comm handle;"), std::string::npos) << layouts_of("int");
    EXPECT_EQ(layouts_of("int"), layouts_of("struct ompi_communicator_t *"));
}

/* What follows them in one block is where others of them would have gaps. */
TEST(LayoutTest, StructsWhoseMemoryHoldsMoreThanThey)
{
    const auto covered = [](const layout &one) {
        std::uint64_t sum = 0;
        for (const auto &each : one.fields)
            sum += each.count * each.size;
        return sum;
    };
    for (const std::string end : {"1", "0"}) {
        const auto found = layout_of("struct { int n; double x[" + end + "]; } it;");
        const auto &one = found.all.all()[found.of_it.number];
        EXPECT_EQ(covered(one), one.size) << end;
    }
    const auto plain = layout_of("struct { int n; double x[2]; } it;");
    EXPECT_EQ(covered(plain.all.all()[plain.of_it.number]), 20u);

    const std::string type = "struct head { int n; double t; struct { char c; int k; } in[2]; };\n"
                             "double *payload(struct head *h) { ";
    const auto size_in = [&](const std::string &body) {
        const auto sources = parse_text(
            {{"small.c", std::string(kDeclarations) + type + body + "}\nstruct head it;"}});
        const auto *variable = sources->globals().at("it");
        layouts all(sources.get(), {}, {}, reused_structs(*sources));
        const auto &made =
            all.all()[all.of(variable->getASTContext(), variable->getType(), "it").number];
        return covered(made);
    };
    EXPECT_EQ(size_in("return (double *)(h + 1);"), 32u);
    EXPECT_EQ(size_in("void *p = h + 1; return p;"), 32u);
    EXPECT_EQ(size_in("char *p = malloc(80); h = (struct head *)p; return &h->t;"), 32u);
    EXPECT_EQ(size_in("h = malloc(sizeof *h); memcpy(h, h + 1, sizeof *h); return &h->t;"), 28u);
}

} // namespace zc::instrument
