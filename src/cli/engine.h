// The engine as our own programs use it: backends loaded, its log kept to errors, a model opened.
#pragma once

#include "llama-cpp.h"

#include <string>
#include <vector>

namespace cascade::cli {

// Loads the engine's backends and keeps its log to errors. Throws std::runtime_error with a message for a person.
void start_engine();

// Only errors, or nothing at all: for work that we stop ourselves, which the engine calls a failure.
void log_errors_only();
void log_nothing();

// `repack`: let the engine rearrange weights for speed. Throws std::runtime_error with a message for a person.
llama_model_ptr load_model(const std::string & path, bool repack);

std::string metadata(const llama_model * model, const char * key);

std::string file_name(const std::string & path);

// Throws std::runtime_error with a message for a person, as the flag's name is -f everywhere.
std::string read_text(const std::string & path);

// A whole text in the model's tokens, and a token as text.
std::vector<llama_token> tokenise(const llama_model * model, const std::string & text);
std::string piece(const llama_model * model, llama_token token);

} // namespace cascade::cli
