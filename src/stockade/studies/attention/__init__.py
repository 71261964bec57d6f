"""The study of Hsieh et al. (On the Robustness of Self-Attentive Models, ACL 2019): one word replaced, several models,
the texts that all of them get right.

The paper is several studies in one, so there are more files than the usual four (`study`, `analysis`, `claims`,
`page`): its choice of texts and models (`inputs`), what it measures inside the models (`inside`, with `inside_page` on
the page), its theorem (`theorem`), and its human raters (`rating_sheet` for what they get, `ratings` for what they
send back).
"""
