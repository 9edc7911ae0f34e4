#include "evaluate/filler.h"

#include "evaluate/random.h"

#include <algorithm>

namespace cascade::evaluate {

namespace {

using Words = std::vector<std::string>;

const Words & people() {
    static const Words words = { "The baker",     "The gardener",    "A young teacher", "The old sailor",
                                 "The clerk",     "A tired guest",   "The carpenter",   "Her neighbour",
                                 "The librarian", "A small child",   "The farmer",      "His sister",
                                 "The postman",   "A quiet student", "The watchmaker",  "The cook" };
    return words;
}

const Words & deeds() {
    static const Words words = {
        "walked to", "looked at",   "talked about", "waited near", "painted",  "remembered",
        "swept",     "returned to", "described",    "visited",     "sketched", "thought about"
    };
    return words;
}

const Words & sights() {
    static const Words words = { "the stone steps",    "the town hall",     "the empty field", "the old mill",
                                 "the harbour",        "the narrow street", "the apple trees", "the wooden hut",
                                 "the little station", "the river bank",    "the church yard", "the low building",
                                 "the school",         "the bakery" };
    return words;
}

const Words & times() {
    static const Words words = { "in the morning",       "after lunch",           "before the rain came",
                                 "on a cold evening",    "while the choir sang",  "during the long summer",
                                 "as the sun went down", "when the shops closed", "with an umbrella in hand",
                                 "without saying a word" };
    return words;
}

const Words & scenes() {
    static const Words words = {
        "The wind moved slowly over the ", "Rain fell softly on the ", "Nobody could say who had built the ",
        "Birds were singing above the ",   "The light over the ",      "A dog slept beside the ",
        "It was quiet around the ",        "Snow had covered the "
    };
    return words;
}

const Words & places() {
    static const Words words = { "meadow", "roof", "lawn", "hillside", "barn",      "path",    "shore", "courtyard",
                                 "road",   "lake", "pond", "cottage",  "farmhouse", "orchard", "cliff", "canal" };
    return words;
}

std::string ending(size_t scene) {
    switch (scene) {
    case 4:
        return " was pale and soft.";
    case 7:
        return " for weeks.";
    default:
        return ".";
    }
}

std::string make_sentence(Random & random) {
    if (random.below(3) == 0) {
        const size_t scene = random.below(scenes().size());
        return scenes()[scene] + random.pick(places()) + ending(scene);
    }
    std::string sentence = random.pick(people()); // one by one: the order of draws must not be the compiler's choice
    sentence += " " + random.pick(deeds());
    sentence += " " + random.pick(sights());
    sentence += " " + random.pick(times());
    return sentence + ".";
}

Words make_sentences(size_t count) {
    Random random(0);
    Words sentences;
    while (sentences.size() < count) {
        std::string sentence = make_sentence(random);
        if (std::find(sentences.begin(), sentences.end(), sentence) == sentences.end()) {
            sentences.push_back(std::move(sentence));
        }
    }
    return sentences;
}

} // namespace

const std::vector<std::string> & filler_sentences() {
    static const Words sentences = make_sentences(512);
    return sentences;
}

const std::vector<std::string> & short_sentences() {
    static const Words words = { "A dog slept beside the road.", "It was warm outside.", "Nobody spoke.",
                                 "It rained." };
    return words;
}

const std::vector<std::string> & nouns() {
    static const Words words = {
        "anchor",   "arrow",  "badge",   "banner",   "barrel", "basket",  "beacon",  "bell",    "blanket", "bottle",
        "bridge",   "brush",  "bucket",  "button",   "camera", "candle",  "carpet",  "castle",  "chain",   "chair",
        "clock",    "cloud",  "coin",    "compass",  "copper", "cotton",  "crown",   "curtain", "desk",    "diamond",
        "door",     "dragon", "drum",    "eagle",    "engine", "feather", "fence",   "flag",    "flute",   "forest",
        "fountain", "garden", "gate",    "ghost",    "glove",  "guitar",  "hammer",  "harbor",  "helmet",  "horn",
        "horse",    "island", "jacket",  "jewel",    "kettle", "key",     "kitchen", "knife",   "ladder",  "lamp",
        "lantern",  "leaf",   "lemon",   "letter",   "lion",   "magnet",  "marble",  "market",  "mask",    "medal",
        "mirror",   "monkey", "moon",    "mountain", "needle", "nest",    "orange",  "oven",    "paddle",  "palace",
        "paper",    "pearl",  "pencil",  "pepper",   "piano",  "pillow",  "pipe",    "pirate",  "planet",  "plate",
        "pocket",   "poem",   "puppet",  "rabbit",   "radio",  "ribbon",  "ring",    "robot",   "rocket",  "rope",
        "saddle",   "salt",   "shadow",  "shell",    "shield", "ship",    "shoe",    "silver",  "snake",   "spoon",
        "spring",   "square", "stable",  "statue",   "storm",  "sugar",   "sword",   "table",   "temple",  "tent",
        "thread",   "throne", "tiger",   "torch",    "tower",  "train",   "tree",    "trumpet", "tunnel",  "turtle",
        "valley",   "vessel", "village", "violin",   "wagon",  "wall",    "watch",   "wheel",   "whistle", "window",
        "winter",   "wolf"
    };
    return words;
}

const std::vector<std::string> & names() {
    static const Words words = {
        "Adam",    "Alice",    "Amy",       "Andrew",  "Anna",    "Arthur", "Barbara", "Ben",     "Bill",     "Bob",
        "Brian",   "Carl",     "Carol",     "Charles", "Chris",   "Claire", "Dan",     "David",   "Diana",    "Donald",
        "Dorothy", "Edward",   "Elizabeth", "Emily",   "Emma",    "Eric",   "Eva",     "Frank",   "Fred",     "George",
        "Grace",   "Harry",    "Helen",     "Henry",   "Howard",  "Ian",    "Jack",    "James",   "Jane",     "Jason",
        "Jean",    "Jennifer", "Jim",       "Joe",     "John",    "Joseph", "Julia",   "Karen",   "Kate",     "Keith",
        "Kevin",   "Larry",    "Laura",     "Lee",     "Linda",   "Lisa",   "Louis",   "Lucy",    "Margaret", "Maria",
        "Mark",    "Martin",   "Mary",      "Max",     "Michael", "Mike",   "Nancy",   "Nick",    "Oliver",   "Oscar",
        "Patrick", "Paul",     "Peter",     "Philip",  "Rachel",  "Ralph",  "Ray",     "Rebecca", "Richard",  "Robert",
        "Roger",   "Rose",     "Roy",       "Ruth",    "Ryan",    "Sam",    "Sarah",   "Scott",   "Simon",    "Sophie",
        "Stephen", "Steve",    "Susan",     "Thomas",  "Tim",     "Tom",    "Tony",    "Victor",  "Walter",   "William"
    };
    return words;
}

} // namespace cascade::evaluate
