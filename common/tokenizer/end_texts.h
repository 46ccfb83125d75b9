// Which tokens end an answer, by their texts: GGUF files state few of them, so that every engine
// looks for texts.
//
// Sources: the models' tokenizer.json and generation_config.json; llama.cpp, src/llama-vocab.cpp.
#ifndef TANDEM_COMMON_TOKENIZER_END_TEXTS_H_
#define TANDEM_COMMON_TOKENIZER_END_TEXTS_H_

#include <string_view>

namespace tandem::tokenizer {

struct EndText {
  std::string_view text;
  // The first one that there is stands for the end of a turn, if none is stated.
  bool is_eot = false;
};
inline constexpr EndText kEndTexts[] = {
    {"<|eot_id|>", true},
    {"<|im_end|>", true},
    {"<|end|>", true},
    {"<end_of_turn>", true},
    {"<|endoftext|>", true},
    {"<|end_of_text|>", true},
    {"<EOT>", true},
    {"_<EOT>", true},
    {"[EOT]", true},
    {"<end_of_utterance>", true},
    {"<\uFF5Cend\u2581of\u2581sentence\uFF5C>", true},
    {"<turn|>", true},
    {"<|eom_id|>"},
    {"<|return|>"},
    {"<|call|>"},
    {"<|flush|>"},
    {"<|calls|>"},
    {"[EOS]"},
    {"[e~["},
    {"<eos>"},
    {"<|tool_response>"},
    // Between files of a repository: what fills a gap in the middle of one ends there.
    {"<|fim_pad|>"},
    {"<|repo_name|>"},
    {"<|file_sep|>"},
};
inline constexpr std::string_view kEndOfMessageText = "<|eom_id|>";
// In formats whose answers have several messages, <|end|> ends a message only: gpt-oss's
// (openai/harmony) and Solar Open's, which have tokens for the end of an answer and of a message
// that calls a tool.
inline constexpr std::string_view kMessageEnd = "<|end|>";
inline constexpr std::string_view kEndsOfMessageFormats[][2] = {{"<|return|>", "<|call|>"},
                                                                {"<|flush|>", "<|calls|>"}};

}  // namespace tandem::tokenizer

#endif  // TANDEM_COMMON_TOKENIZER_END_TEXTS_H_
