// Stands in for llama.cpp's `common` library, which takes longer to compile than all the rest.
// llama-cpp-sys-2's C++ wrapper refers to these functions, and nothing here calls them: llama-cpp-2
// is used without its feature `common`. Linux leaves the references out when it links; Windows
// wants each of them defined.

#include "common.h"
#include "fit.h"
#include "json-schema-to-grammar.h"
#include "json.h"
#include "speculative.h"

#include <cstdio>
#include <cstdlib>

[[noreturn]] static void left_out() {
    std::fputs("hone: llama.cpp's common library is not in this program\n", stderr);
    std::abort();
}

common_batch::common_batch(llama_context *) { left_out(); }
void common_batch::clear() { left_out(); }
int32_t common_batch::add(llama_token, llama_pos, llama_seq_id, bool) { left_out(); }

common_json::~common_json() { left_out(); }
common_json common_json::parse(const std::string &) { left_out(); }
std::string regex_escape(const std::string &) { left_out(); }
std::string json_schema_to_grammar(const common_json &, bool) { left_out(); }

common_params_fit_status common_fit_params(const char *, llama_model_params *,
                                           llama_context_params *, float *,
                                           llama_model_tensor_buft_override *, size_t *, uint32_t,
                                           const common_fit_extra_model *, ggml_log_level) {
    left_out();
}
void common_memory_breakdown_print(const llama_context *) { left_out(); }

common_speculative * common_speculative_init(common_params_speculative &, uint32_t) { left_out(); }
void common_speculative_free(common_speculative *) { left_out(); }
void common_speculative_begin(common_speculative *, llama_seq_id, const llama_tokens &) {
    left_out();
}
void common_speculative_draft(common_speculative *) { left_out(); }
common_speculative_draft_params & common_speculative_get_draft_params(common_speculative *,
                                                                      llama_seq_id) {
    left_out();
}
bool common_speculative_process(common_speculative *, const common_batch &) { left_out(); }
void common_speculative_accept(common_speculative *, llama_seq_id, uint16_t) { left_out(); }
