// Prose that says nothing, to hide things in: different sentences put together from word lists, without a digit in
// them. And the words that questions are about, none of which a sentence contains.
#pragma once

#include <string>
#include <vector>

namespace cascade::evaluate {

// Few enough that each is counted in tokens once for all questions.
const std::vector<std::string> & filler_sentences();

// The shortest there are, from longest to shortest: they fill what is left where no other sentence fits.
const std::vector<std::string> & short_sentences();

// Nouns and first names, most of them one token with the space before them in common vocabularies.
const std::vector<std::string> & nouns();
const std::vector<std::string> & names();

} // namespace cascade::evaluate
