/* SPDX-License-Identifier: BSD-3-Clause */
#include "pointers.h"

#include "resources.h"

namespace zc::instrument {

using llvm::dyn_cast;
using llvm::dyn_cast_or_null;

namespace {

const std::string kAnything = "?";

using keys = std::set<std::string>;

clang::QualType without_atomic(clang::QualType type)
{
    const auto *atomic = type->getAs<clang::AtomicType>();
    return atomic ? atomic->getValueType() : type;
}

bool is_pointer(clang::QualType type)
{
    return without_atomic(type)->isPointerType();
}

bool is_address(const clang::Expr *value)
{
    return is_pointer(value->getType()) || value->getType()->isArrayType();
}

clang::QualType without_arrays(clang::QualType type)
{
    while (!type.isNull() && type->isArrayType())
        type = type->getAsArrayTypeUnsafe()->getElementType();
    return type;
}

const clang::RecordDecl *record_of(clang::QualType type)
{
    type = without_arrays(type);
    return type.isNull() ? nullptr : type->getAsRecordDecl();
}

/* Is @inner @outer, or a part of it? */
bool is_in(const clang::RecordDecl *outer, const clang::RecordDecl *inner)
{
    if (!outer || outer->getCanonicalDecl() == inner->getCanonicalDecl())
        return outer;
    outer = outer->getDefinition();
    if (!outer)
        return false;
    for (const auto *member : outer->fields())
        if (is_in(record_of(member->getType()), inner))
            return true;
    return false;
}

void insert(keys &to, const keys &more)
{
    to.insert(more.begin(), more.end());
}

} // namespace

pointers::pointers(const program &all, const std::vector<assignment> &assignments,
                   const accesses &used)
    : program_(all)
{
    note_types();
    insert(anything_, used.escaping());
    do {
        grows_ = false;
        for (const auto &one : assignments)
            set(one);
        for (const auto &[in, call] : calls_)
            look_at_call(*in, call);
        for (const auto &[in, cast] : casts_)
            look_at_cast(*in, cast);
    } while (grows_);
    led_to_ = anything_;
    for (auto &[key, targets] : targets_) {
        targets = all_of(targets);
        insert(led_to_, targets);
    }
}

void pointers::note_types()
{
    for (const auto &[key, variable] : program_.globals())
        note_type(variable);
    for (const auto &[name, one] : program_.functions())
        for (const auto *parameter : one.decl->parameters())
            note_type(parameter);
    for_each_initial_statement(program_,
                               [this](const clang::Stmt *each) { note_statement(nullptr, each); });
    for_each_statement(program_, [this](const function *in, const clang::Stmt *each) {
        if (each)
            note_statement(in, each);
    });
}

void pointers::note_type(const clang::ValueDecl *decl)
{
    if (const auto *variable = dyn_cast<clang::VarDecl>(decl))
        types_.try_emplace(program::key(variable), variable->getType());
    const auto *field = dyn_cast<clang::FieldDecl>(decl);
    if (!field)
        return;
    types_.try_emplace(program::key(field), field->getType());
    fields_.try_emplace(program::key(field), field);
    if (!field->getParent()->isUnion() || shared_.count(program::key(field)))
        return;
    keys members;
    add_fields(field->getParent(), members);
    share(members);
}

/* @fields may be of one memory, and so is what shares memory with one of them. */
void pointers::share(const keys &fields)
{
    keys all = fields;
    for (const auto &key : fields)
        if (const auto known = group_of_.find(key); known != group_of_.end())
            insert(all, groups_[known->second]);
    if (all.empty())
        return;
    for (const auto &key : all) {
        groups_.erase(key);
        group_of_[key] = *all.begin();
    }
    insert(shared_, all);
    groups_[*all.begin()] = std::move(all);
}

keys pointers::of_same_memory(const std::string &key) const
{
    keys found{key};
    if (const auto group = group_of_.find(key); group != group_of_.end())
        insert(found, groups_.at(group->second));
    if (const auto other = views_.find(key); other != views_.end())
        insert(found, other->second);
    return found;
}

void pointers::note_statement(const function *in, const clang::Stmt *each)
{
    if (const auto *reference = dyn_cast<clang::DeclRefExpr>(each))
        note_type(reference->getDecl());
    if (const auto *member = dyn_cast<clang::MemberExpr>(each))
        note_type(member->getMemberDecl());
    if (const auto *declaration = dyn_cast<clang::DeclStmt>(each))
        for (const auto *decl : declaration->decls())
            if (const auto *variable = dyn_cast<clang::VarDecl>(decl))
                note_type(variable);
    if (const auto *literal = dyn_cast<clang::CompoundLiteralExpr>(each)) {
        types_.try_emplace(key_of_literal(literal), literal->getType());
        anything_.insert(key_of_literal(literal));
    }
    const auto *address = dyn_cast<clang::UnaryOperator>(each);
    if (address && address->getOpcode() == clang::UO_AddrOf)
        note_address(in, address, address->getSubExpr());
    const auto *cast = dyn_cast<clang::CastExpr>(each);
    if (cast && cast->getCastKind() == clang::CK_ArrayToPointerDecay)
        note_address(in, cast, cast->getSubExpr());
    if (cast && cast->getCastKind() == clang::CK_BitCast && in)
        casts_.emplace_back(in, cast);
    if (const auto *call = dyn_cast<clang::CallExpr>(each); call && in)
        calls_.emplace_back(in, call);
}

/* Of fields: whether the address of a variable is kept is known. */
void pointers::note_address(const function *in, const clang::Expr *address,
                            const clang::Expr *object)
{
    const auto *up =
        in ? in->parents->getParentIgnoreParenCasts(const_cast<clang::Expr *>(address)) : nullptr;
    if (up && llvm::isa<clang::ArraySubscriptExpr>(up))
        return;
    while (const auto *subscript = dyn_cast<clang::ArraySubscriptExpr>(object->IgnoreParens()))
        object = subscript->getBase()->IgnoreImpCasts();
    if (llvm::isa<clang::MemberExpr>(object->IgnoreParenCasts()))
        anything_.insert(key_of_object(object));
}

/* A variable that is used as another type: what is written into one is read of the other. */
void pointers::look_at_cast(const function &in, const clang::CastExpr *cast)
{
    if (!is_pointer(cast->getType()))
        return;
    const auto pointee = without_atomic(cast->getType())->getPointeeType();
    const auto *to = record_of(pointee);
    if (cast->getSubExpr()->getType()->isVoidPointerType() && !pointee->isVoidType())
        for (const auto &key : found_of(in, cast->getSubExpr()))
            if (key.rfind("block ", 0) == 0 && !is_of_wrapper(key))
                look_at_block(key, pointee);
    if (!to || !to->getDefinition())
        return;
    /* What is allocated is a pointer to void first; that says nothing of another type. */
    const bool is_other = !cast->getSubExpr()->IgnoreParenCasts()->getType()->isVoidPointerType();
    for (const auto &key : found_of(in, cast->getSubExpr())) {
        const auto type = without_arrays(type_of(key));
        const auto *from = record_of(type);
        if (!from &&
            (type.isNull() ? is_other && key.rfind("block ", 0) == 0 : !is_pointer(type))) {
            keys parts;
            add_fields(to, parts);
            insert(views_[key], parts);
            for (const auto &part : parts)
                views_[part].insert(key);
        }
        if (type.isNull() || (from ? is_in(from, to) || is_in(to, from) : !is_pointer(type)))
            continue;
        const auto before = shared_.size();
        keys both;
        add_fields(to, both);
        add_fields(from, both);
        share(both);
        grows_ |= shared_.size() > before;
    }
}

/* Does a function of the program hand it out as void *? Then it is not one block: each caller may
 * have one of its own, of another type. */
bool pointers::is_of_wrapper(const std::string &key) const
{
    for (const auto &[name, one] : program_.functions())
        if (one.decl->getReturnType()->isVoidPointerType() &&
            raw_targets_of(name + "()").count(key) > 0)
            return true;
    return false;
}

/* A block that is used as two types is one memory. */
void pointers::look_at_block(const std::string &key, clang::QualType as)
{
    auto &use = blocks_[key];
    const auto *record = record_of(as);
    record = record ? record->getDefinition() : nullptr;
    if (!record && !is_pointer(without_arrays(as))) {
        grows_ |= !std::exchange(use.is_plain, true);
    } else if (record && use.structs.count(record) == 0) {
        grows_ = true;
        auto &fields = use.structs[record];
        add_fields(record, fields);
        for (const auto &[other, more] : use.structs)
            if (!is_in(other, record) && !is_in(record, other)) {
                keys both = fields;
                insert(both, more);
                share(both);
            }
    }
    for (const auto &[each, fields] : use.structs)
        if (use.is_plain)
            for (const auto &part : fields) {
                views_[part].insert(key);
                views_[key].insert(part);
            }
}

clang::QualType pointers::type_of(const std::string &key) const
{
    const auto found = types_.find(key);
    return found == types_.end() ? clang::QualType() : found->second;
}

keys pointers::all_of(const keys &found) const
{
    auto all = found;
    if (all.erase(kAnything) > 0)
        insert(all, with_fields(anything_));
    return all;
}

keys pointers::targets_of(const function &in, const clang::Expr *pointer) const
{
    return all_of(found_of(in, pointer));
}

keys pointers::objects_of(const function &in, const clang::Expr *object) const
{
    return all_of(found_objects_of(in, object));
}

void pointers::add(const std::string &key, const keys &targets)
{
    if (targets.empty())
        return;
    for (const auto &one : targets)
        if (one.rfind("block ", 0) == 0)
            anything_.insert(one);
    auto &known = targets_[key];
    const auto before = known.size();
    known.insert(targets.begin(), targets.end());
    grows_ |= known.size() > before;
}

void pointers::set(const assignment &one)
{
    const auto &any = program_.functions().begin()->second; /* nothing is allocated before main() */
    const auto &in = one.in ? *one.in : any;
    if (!is_address(one.value))
        return;
    if (!one.to)
        add(one.key, found_of(in, one.value));
    else if (is_pointer(one.type))
        for (const auto &key : with_fields(objects_of(in, one.to)))
            add(key, found_of(in, one.value));
}

void pointers::look_at_call(const function &in, const clang::CallExpr *call)
{
    const auto *callee = callee_of(call);
    const std::string name = callee && !program_.find(callee) ? callee->getNameAsString() : "";
    if (name == "posix_memalign" && call->getNumArgs() > 0)
        for (const auto &key : all_of(found_of(in, call->getArg(0))))
            add(key, {"block " + in.place(call)});
    if (name.rfind("strto", 0) == 0 && call->getNumArgs() > 1) /* where it has ended */
        for (const auto &key : all_of(found_of(in, call->getArg(1))))
            add(key, found_of(in, call->getArg(0)));
    if ((name.find("memcpy") == std::string::npos && name.find("memmove") == std::string::npos) ||
        call->getNumArgs() < 2)
        return;
    /* A field stays what it is if the types do; otherwise any may become any other. */
    const auto into = resources::pointees_of(call->getArg(0)),
               out_of = resources::pointees_of(call->getArg(1));
    if (into.size() == 1 && out_of.size() == 1 && record_of(into.front()) &&
        in.context().hasSameUnqualifiedType(into.front(), out_of.front()))
        return;
    keys values;
    for (const auto &key : fields_of(all_of(found_of(in, call->getArg(1))), out_of))
        if (!record_of(type_of(key)))
            insert(values, value_of({key}));
    for (const auto &key : fields_of(all_of(found_of(in, call->getArg(0))), into))
        add(key, values);
}

keys pointers::results_of(const function &in, const clang::CallExpr *call) const
{
    keys found;
    const auto *callee = callee_of(call);
    const auto *own = program_.find(callee);
    if (own || !callee)
        for (const auto *one : called_by(program_, call))
            insert(found, raw_targets_of(one->name + "()"));
    if (own)
        return found;
    const auto *known = callee ? find_known(callee->getNameAsString()) : nullptr;
    if (callee && (!known || known->what == known_call::kind::refused))
        found.insert(kAnything);
    if (known && known->what == known_call::kind::allocates)
        found.insert("block " + in.place(call));
    /* realloc(), strchr(), memcpy(): what they are given */
    for (unsigned i = 0; known && i < call->getNumArgs(); i++)
        if (is_pointer(call->getArg(i)->getType()))
            insert(found, found_of(in, call->getArg(i)));
    return found;
}

keys pointers::found_objects_of(const function &in, const clang::Expr *object) const
{
    object = object->IgnoreParenCasts();
    if (const auto *subscript = dyn_cast<clang::ArraySubscriptExpr>(object))
        return found_of(in, subscript->getBase());
    if (const auto *op = dyn_cast<clang::UnaryOperator>(object);
        op && op->getOpcode() == clang::UO_Deref)
        return found_of(in, op->getSubExpr());
    if (const auto *literal = dyn_cast<clang::CompoundLiteralExpr>(object))
        return {key_of_literal(literal)};
    if (const auto *choice = dyn_cast<clang::AbstractConditionalOperator>(object)) {
        auto both = found_objects_of(in, choice->getTrueExpr());
        insert(both, found_objects_of(in, choice->getFalseExpr()));
        return both;
    }
    if (const auto *same = dyn_cast<clang::OpaqueValueExpr>(object))
        return same->getSourceExpr() ? found_objects_of(in, same->getSourceExpr())
                                     : keys{kAnything};
    const auto key = key_of_object(object);
    return key.empty() ? keys{} : keys{key};
}

/* What the pointers in @objects lead to. */
keys pointers::value_of(const keys &objects) const
{
    keys found;
    for (const auto &key : objects) {
        if (key == kAnything || shared_.count(key) || record_of(type_of(key)))
            found.insert(kAnything);
        insert(found, raw_targets_of(key));
    }
    return found;
}

keys pointers::found_of(const function &in, const clang::Expr *pointer) const
{
    pointer = pointer->IgnoreParenCasts();
    if (pointer->getType()->isArrayType())
        return found_objects_of(in, pointer);
    const auto both = [&](const clang::Expr *one, const clang::Expr *other) {
        auto found = found_of(in, one);
        insert(found, found_of(in, other));
        return found;
    };
    if (const auto *choice = dyn_cast<clang::AbstractConditionalOperator>(pointer))
        return both(choice->getTrueExpr(), choice->getFalseExpr());
    if (const auto *same = dyn_cast<clang::OpaqueValueExpr>(pointer))
        return same->getSourceExpr() ? found_of(in, same->getSourceExpr()) : keys{kAnything};
    if (const auto *block = dyn_cast<clang::StmtExpr>(pointer)) {
        const auto *last = dyn_cast_or_null<clang::Expr>(block->getSubStmt()->getStmtExprResult());
        return last ? found_of(in, last) : keys{kAnything};
    }
    if (const auto *op = dyn_cast<clang::BinaryOperator>(pointer)) {
        if (op->isAdditiveOp() || op->isCompoundAssignmentOp())
            return found_of(in, is_address(op->getLHS()) ? op->getLHS() : op->getRHS());
        return op->isAssignmentOp() || op->getOpcode() == clang::BO_Comma
                   ? found_of(in, op->getRHS())
                   : keys{kAnything};
    }
    if (const auto *op = dyn_cast<clang::UnaryOperator>(pointer)) {
        if (op->getOpcode() == clang::UO_AddrOf)
            return found_objects_of(in, op->getSubExpr());
        if (op->isIncrementDecrementOp())
            return found_of(in, op->getSubExpr());
    }
    if (const auto *call = dyn_cast<clang::CallExpr>(pointer); call && is_pointer(call->getType()))
        return results_of(in, call);
    if (llvm::isa<clang::ImplicitValueInitExpr, clang::AddrLabelExpr>(pointer) ||
        pointer->getType()->isFunctionType())
        return {};
    if (!is_pointer(pointer->getType())) /* a number: NULL, MPI_IN_PLACE, or what is not known */
        return pointer->isIntegerConstantExpr(in.context()) ? keys{} : keys{kAnything};
    if (llvm::isa<clang::DeclRefExpr, clang::MemberExpr, clang::ArraySubscriptExpr,
                  clang::UnaryOperator, clang::CompoundLiteralExpr>(pointer))
        return value_of(found_objects_of(in, pointer));
    return {kAnything};
}

const keys &pointers::targets_of(const std::string &key) const
{
    return raw_targets_of(key);
}

const keys &pointers::raw_targets_of(const std::string &key) const
{
    static const keys none;
    const auto found = targets_.find(key);
    return found == targets_.end() ? none : found->second;
}

keys pointers::with_fields(const keys &some) const
{
    keys all;
    for (const auto &key : some) {
        const auto *record = record_of(type_of(key));
        if (record)
            add_fields(record, all);
        else
            all.insert(key);
    }
    return all;
}

/* @objects, and the fields of them and of @types. */
keys pointers::fields_of(const keys &objects, const std::vector<clang::QualType> &types) const
{
    auto all = with_fields(objects);
    for (const auto type : types)
        if (const auto *record = record_of(type))
            add_fields(record, all);
    return all;
}

} // namespace zc::instrument
