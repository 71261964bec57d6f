"""Models of other people as a user would name them: `python:` functions around their public interface."""

from __future__ import annotations


def vader(texts: list[str]) -> list[float]:
    """The probability of "positive", from the compound score of VADER."""
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

    analyzer = SentimentIntensityAnalyzer()
    return [(analyzer.polarity_scores(text)["compound"] + 1) / 2 for text in texts]


def textblob(texts: list[str]) -> list[float]:
    """The probability of "positive", from the polarity of TextBlob."""
    from textblob import TextBlob

    return [(TextBlob(text).sentiment.polarity + 1) / 2 for text in texts]
